// The connection to the broker's socket: newline-delimited JSON-RPC 2.0, see
// docs/socket.md. One connection per thread carries any number of calls at
// once. It keeps the event loop alive only while an answer is outstanding.

import { ToolError } from "./result.js";

const { createConnection } = process.getBuiltinModule("node:net");
const { isMainThread } = process.getBuiltinModule("node:worker_threads");

const SOCKET = "/run/airlock/broker.sock";
const MAX_FRAME = 16 << 20; // bytes, the newline included

// A run may have 64 requests in flight over all its processes and threads.
const HOME_LIMIT = 48;
const OTHER_LIMIT = 2;

const CHUNK = 1 << 16; // bytes that one read may take
const MOST_REJOINS = 100; // without an answer: more suspensions than a call lasts

const { parse } = JSON;
const { nextTick } = process; // an import of node:process would open stdin
const ID_PREFIX = '{"jsonrpc":"2.0","id":';

let keepsOpen = false;
let connection = null;
let lastId = null;

/** Says that this is the guest's own thread, whose connection stays open between calls. */
export function keepHome() {
  keepsOpen = isMainThread;
}

/**
 * Sends one request and returns a promise of its answer's result. `params` is
 * JSON text. Rejects with a ToolError when it does not fit a frame or when the
 * connection breaks.
 */
export function request(method, params) {
  lastId ??= keepsOpen ? 0 : Math.floor(Math.random() * 2 ** 48); // no other thread or process uses the same IDs
  const id = ++lastId;
  const frame = Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}\n`);
  return new Promise((resolve, reject) => {
    if (frame.length > MAX_FRAME) {
      const message = `the arguments take ${frame.length} bytes as JSON and a call holds at most ${MAX_FRAME}: send ` +
        "less at a time";
      reject(new ToolError("ValidationError", message, { source: "code" }));
      return;
    }
    connection ??= new Connection(keepsOpen ? HOME_LIMIT : OTHER_LIMIT);
    connection.send({ id, frame, resolve, reject });
  });
}

class Connection {
  #limit;
  #socket;
  #joined; // the socket was connected
  #rejoins = 0; // since the last answer
  #pending = new Map(); // id → request, for what was sent and not answered
  #waiting = []; // requests not sent yet
  #gathers = false; // all requests of one turn are sent by one write
  #parts = []; // the beginning of a frame whose end has not come
  #size = 0; // bytes in #parts

  constructor(limit) {
    this.#limit = limit;
    this.#connect();
  }

  #connect() {
    // One buffer is kept: Node else makes one of 64 KiB for each answer.
    const callback = (size, buffer) => {
      this.#onData(buffer.subarray(0, size));
      return true;
    };
    const socket = createConnection({ path: SOCKET, onread: { buffer: Buffer.alloc(CHUNK), callback } });
    socket
      .on("connect", () => {
        this.#joined = true;
      })
      .on("error", (cause) => this.#lose(socket, `the connection to the broker broke: ${cause.message}`))
      .on("close", () => this.#lose(socket, "the broker closed the connection"));
    this.#socket = socket;
    this.#joined = false;
  }

  send(request) {
    if (this.#pending.size >= this.#limit) {
      this.#waiting.push(request);
      return;
    }
    if (this.#pending.size === 0) this.#socket.ref();
    this.#pending.set(request.id, request);
    if (this.#pending.size > 1) this.#gather();
    this.#write(request);
  }

  #write(request) {
    this.#socket.write(request.frame, (cause) => {
      request.sent = !cause;
    });
  }

  #gather() {
    if (this.#gathers) return;
    this.#gathers = true;
    this.#socket.cork();
    const socket = this.#socket;
    nextTick(() => {
      if (socket === this.#socket) this.#gathers = false;
      socket.uncork();
    });
  }

  #onData(chunk) {
    let start = 0;
    for (let end; (end = chunk.indexOf(10, start)) >= 0; start = end + 1) {
      const last = chunk.subarray(start, end);
      const frame = this.#parts.length ? Buffer.concat([...this.#parts, last]) : last;
      this.#parts = [];
      this.#size = 0;
      this.#onFrame(frame.toString());
    }
    if (start === chunk.length) return;
    this.#parts.push(Buffer.from(chunk.subarray(start)));
    this.#size += chunk.length - start;
    if (this.#size >= MAX_FRAME) this.#break(`the broker sent a frame of more than ${MAX_FRAME} bytes`);
  }

  #onFrame(frame) {
    this.#rejoins = 0;
    let answer;
    try {
      answer = parse(frame);
    } catch (cause) {
      // Fail the one request that the frame answers, if it has an ID.
      answer = { id: frame.startsWith(ID_PREFIX) ? Number.parseInt(frame.slice(ID_PREFIX.length), 10) : null };
      answer.unreadable = `the broker's answer of ${frame.length} characters cannot be read: ${cause.message}`;
    }
    const request = this.#pending.get(answer.id);
    if (!request) {
      this.#break(answer.unreadable ?? "the broker answered a request that was never made");
      return;
    }
    this.#pending.delete(answer.id);
    if (answer.result) request.resolve(answer.result);
    else request.reject(lost(answer.unreadable ?? "the broker refused the request"));
    if (this.#waiting.length) this.send(this.#waiting.shift());
    else if (this.#pending.size === 0) this.#rest();
  }

  /** Stops keeping the event loop alive; outside the guest's own thread, hangs up. */
  #rest() {
    this.#socket.unref();
    if (keepsOpen) return;
    connection = null;
    this.#socket.removeAllListeners("close").end();
  }

  /**
   * Goes on with another socket: the sandbox was suspended, which closes all of them. A request
   * that was sent is not sent again: the broker is asked for its answers.
   */
  #lose(socket, reason) {
    if (socket !== this.#socket) return;
    socket.destroy();
    if (this.#pending.size === 0 || !this.#joined || ++this.#rejoins > MOST_REJOINS) {
      this.#break(reason);
      return;
    }
    this.#parts = [];
    this.#size = 0;
    this.#gathers = false;
    this.#connect();
    for (const request of this.#pending.values()) {
      if (request.sent) this.#socket.write(`${ID_PREFIX}${request.id},"method":"run/reclaim","params":{}}\n`);
      else this.#write(request);
    }
  }

  #break(reason) {
    if (connection === this) connection = null;
    this.#socket.destroy();
    for (const request of [...this.#pending.values(), ...this.#waiting]) request.reject(lost(reason));
    this.#pending.clear();
    this.#waiting = [];
  }
}

function lost(message) {
  return new ToolError("SandboxError", message, { source: "sandbox" });
}
