// The guest's own connection to the host. Tool calls never travel on it.
//
// The code is fetched as Node does it. The outcome is delivered from the exit
// handler, where no event loop runs, so it is written and answered with blocking
// calls on the socket's descriptor.

import { readSync } from "node:fs";
import { createConnection } from "node:net";
import { whenReady } from "./blocking.mjs";
import { writeFully } from "./output.mjs";

const SOCKET = "/run/airlock/broker.sock";
const { parse, stringify } = JSON;
const { alloc, from: toBytes } = Buffer;

/** A connection to the broker's socket. */
export class Link {
  #socket;
  #descriptor;

  /** Connects; the promise rejects when the host does not listen. */
  static async open() {
    const link = new Link();
    await new Promise((resolve, reject) => {
      link.#socket = createConnection({ path: SOCKET }, resolve).once("error", reject);
    });
    // Node has no public way to a socket's descriptor, nor blocking sockets.
    link.#descriptor = link.#socket._handle.fd;
    return link;
  }

  /** Fetches the code; waits for as long as the host takes. */
  async start() {
    this.#socket.write(frame("run/start", "{}"));
    const parts = [];
    const answer = await new Promise((resolve, reject) => {
      this.#socket.on("data", (chunk) => {
        parts.push(chunk);
        if (chunk.at(-1) === 10) resolve(Buffer.concat(parts));
      });
      this.#socket.once("close", () => reject(new Error("the host closed the socket")));
    });
    // From here on the socket neither keeps the event loop alive nor reads.
    this.#socket
      .removeAllListeners()
      .on("error", () => {})
      .pause()
      .unref();
    return parse(answer).result.code;
  }

  /** Delivers the outcome, given as JSON text, and blocks until the host has it. */
  finish(params) {
    writeFully(this.#descriptor, toBytes(frame("run/finish", params)));
    const chunk = alloc(4096);
    let read;
    do {
      read = whenReady(() => readSync(this.#descriptor, chunk));
      if (read === 0) throw new Error("the host closed the socket");
    } while (chunk[read - 1] !== 10);
  }
}

function frame(method, params) {
  const id = stringify(method);
  return `{"jsonrpc":"2.0","id":${id},"method":${id},"params":${params}}\n`;
}
