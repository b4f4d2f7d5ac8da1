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
    await new Promise((resolve, reject) => link.#connect().once("connect", resolve).once("error", reject));
    return link;
  }

  /** Opens the socket, which is connected at once: a connection to a local socket never has to wait. */
  #connect() {
    // A socket that is paused from the start never reads by itself.
    this.#socket = createConnection({ path: SOCKET }).pause().unref();
    // Node has no public way to a socket's descriptor, nor blocking sockets.
    this.#socket._handle.setBlocking(true);
    this.#descriptor = this.#socket._handle.fd;
    this.#unread = 0;
    return this.#socket;
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
    this.#again(() => writeFully(this.#descriptor, toBytes(frame(method, params))));
    this.#unread++;
  }

  /** Reads the answers to what was told, which have come. Unread ones would keep the sandbox from being suspended. */
  settle() {
    while (this.#unread > 0) this.#receive();
  }

  #request(method, params) {
    return this.#again(() => {
      writeFully(this.#descriptor, toBytes(frame(method, params)));
      return this.#read();
    });
  }

  /** Does something with the socket; once more with another one if the sandbox was suspended, which closes it. */
  #again(act) {
    try {
      return act();
    } catch {
      this.#connect().on("error", () => {});
      return act();
    }
  }

  #read() {
    const parts = [];
    for (;;) {
      const chunk = this.#receive();
      if (chunk.length === 0) continue;
      parts.push(chunk);
      if (chunk.at(-1) === NEWLINE) return concat(parts);
    }
  }

  /** Returns what can be read, without the answers to what was told. */
  #receive() {
    const chunk = alloc(CHUNK);
    const size = readSync(this.#descriptor, chunk);
    if (size === 0) throw new Error("the host closed the socket");
    let start = 0;
    for (; this.#unread > 0; this.#unread--) {
      const end = chunk.subarray(0, size).indexOf(NEWLINE, start);
      if (end < 0) return chunk.subarray(size, size);
      start = end + 1;
    }
    return chunk.subarray(start, size);
  }
}

function frame(method, params) {
  const id = stringify(method);
  return `{"jsonrpc":"2.0","id":${id},"method":${id},"params":${params}}\n`;
}
