// Output that waits in memory which two threads share: the one that prints and the
// one that writes (pump.cjs).

"use strict";

const { writeSync } = require("node:fs");
const { whenReady } = require("./blocking.cjs");

const ROOM = 256 << 10; // bytes for each descriptor
const STREAMS = [1, 2];

// Places in the words: the sizes by descriptor, whether something waits, and who
// changes the memory, and who writes.
const WAITING = 0;
const CHANGING = 3;
const WRITING = 4;

const write = writeSync; // the code may be given another

/** What is held of both streams. */
class Held {
  #words;
  #bytes;

  /** Takes the memory of another thread's, or makes it. */
  constructor(shared = { words: new SharedArrayBuffer(20), bytes: new SharedArrayBuffer(ROOM * STREAMS.length) }) {
    this.shared = shared;
    this.#words = new Int32Array(shared.words);
    this.#bytes = STREAMS.map((_, i) => Buffer.from(shared.bytes, i * ROOM, ROOM));
  }

  /** Reports whether nothing of a stream is held. */
  isEmpty(descriptor) {
    return Atomics.load(this.#words, descriptor) === 0;
  }

  /** Holds a chunk, a string or Buffer, or reports that it is too large for that. */
  add(descriptor, chunk, encoding = "utf8") {
    const text = typeof chunk === "string";
    const most = text ? chunk.length * 3 : chunk.length; // bytes, in any encoding
    if (most > ROOM / 2) return false;
    if (this.#words[descriptor] + most > ROOM) this.flush();
    this.#lock(CHANGING);
    const size = this.#words[descriptor];
    const bytes = this.#bytes[descriptor - 1];
    Atomics.store(this.#words, descriptor, size + (text ? bytes.write(chunk, size, encoding) : chunk.copy(bytes, size)));
    this.#unlock(CHANGING);
    if (Atomics.exchange(this.#words, WAITING, 1) === 0) Atomics.notify(this.#words, WAITING);
    return true;
  }

  /** Writes all that is held; returns when it is written, by this thread or the other. */
  flush() {
    this.#lock(WRITING);
    try {
      for (const descriptor of STREAMS) this.#write(descriptor);
    } finally {
      this.#unlock(WRITING);
    }
  }

  /** Forgets what is held, unwritten. */
  discard() {
    for (const descriptor of STREAMS) this.#words[descriptor] = 0;
    this.#words[WAITING] = 0;
  }

  /** Blocks until something is held; then writes it after `delay` milliseconds. */
  pump(delay) {
    Atomics.wait(this.#words, WAITING, 0);
    Atomics.wait(this.#words, WAITING, 1, delay);
    Atomics.store(this.#words, WAITING, 0);
    this.flush();
  }

  /** Writes what is held of one stream. More may be held meanwhile. */
  #write(descriptor) {
    this.#lock(CHANGING);
    let data = Buffer.from(this.#bytes[descriptor - 1].subarray(0, this.#words[descriptor]));
    Atomics.store(this.#words, descriptor, 0);
    this.#unlock(CHANGING);
    while (data.length) data = data.subarray(whenReady(() => write(descriptor, data)));
  }

  // A lock is 0 where it is free, 1 where it is held, 2 where a thread may wait for it.

  #lock(which) {
    if (Atomics.compareExchange(this.#words, which, 0, 1) === 0) return;
    while (Atomics.exchange(this.#words, which, 2) !== 0) Atomics.wait(this.#words, which, 2, 1);
  }

  #unlock(which) {
    if (Atomics.exchange(this.#words, which, 0) === 2) Atomics.notify(this.#words, which, 1);
  }
}

module.exports = { Held };
