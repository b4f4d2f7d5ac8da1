// The guest's own connection to the host. Tool calls never travel on it.
//
// Blocking calls on the socket's descriptor: before the code there is nothing else
// to do, and the outcome is delivered from the exit handler, when no event loop
// runs.

import { writeFully } from "./output.mjs";

const { readSync } = process.getBuiltinModule("node:fs");
const { createConnection } = process.getBuiltinModule("node:net");

const SOCKET = "/run/airlock/broker.sock";
const { parse, stringify } = JSON;
const { alloc, concat, from: toBytes } = Buffer;
const CHUNK = 1 << 16; // bytes
const NEWLINE = 10;

/** A connection to the broker's socket. */
export class Link {
  #socket; // held, because closing it would close the descriptor
  #descriptor;
  #unread = 0; // answers to read past

  /** Connects; the promise rejects when the host does not listen. */
  static async open() {
    const link = new Link();
    await new Promise((resolve, reject) => {
      // A socket that is paused from the start never reads by itself.
      link.#socket = createConnection({ path: SOCKET }, resolve).once("error", reject).pause();
    });
    // Node has no public way to a socket's descriptor, nor blocking sockets.
    link.#socket.unref()._handle.setBlocking(true);
    link.#descriptor = link.#socket._handle.fd;
    return link;
  }

  /** Fetches the code, as `code`, with what comes with it; blocks for as long as the host takes. */
  start() {
    return this.request("run/start", "{}");
  }

  /** Sends one request, its params as JSON text, and blocks until it has the result. */
  request(method, params) {
    return parse(this.#request(method, params)).result;
  }

  /** Delivers the outcome, given as JSON text, and blocks until the host has it. */
  finish(params) {
    this.#request("run/finish", params);
  }

  /**
   * Sends one request and does not wait for its answer, which is empty. The host
   * handles it before what is requested next.
   */
  tell(method, params) {
    writeFully(this.#descriptor, toBytes(frame(method, params)));
    this.#unread++;
  }

  #request(method, params) {
    writeFully(this.#descriptor, toBytes(frame(method, params)));
    const parts = [];
    for (;;) {
      const chunk = alloc(CHUNK);
      const read = readSync(this.#descriptor, chunk);
      if (read === 0) throw new Error("the host closed the socket");
      let start = 0;
      for (; this.#unread > 0; this.#unread--) {
        const end = chunk.subarray(0, read).indexOf(NEWLINE, start);
        if (end < 0) break;
        start = end + 1;
      }
      if (this.#unread > 0) continue;
      parts.push(chunk.subarray(start, read));
      if (start < read && chunk[read - 1] === NEWLINE) return concat(parts);
    }
  }
}

function frame(method, params) {
  const id = stringify(method);
  return `{"jsonrpc":"2.0","id":${id},"method":${id},"params":${params}}\n`;
}
