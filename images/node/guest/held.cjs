// Output that waits in memory which two threads share: the one that prints and the
// one that writes (pump.cjs).

"use strict";

const { writeSync } = require("node:fs");
const { inspect } = require("node:util");
const { whenReady } = require("./blocking.cjs");

const ROOM = 256 << 10; // bytes for each descriptor
const LINE = 1 << 10; // bytes of a line that is held piece by piece, at most
const DIGITS = 11; // of a whole number of 32 bits, with its sign
const STREAMS = [1, 2];

// Places in the words: the sizes by descriptor, whether something waits, and who
// changes the memory, and who writes.
const WAITING = 0;
const CHANGING = 3;
const WRITING = 4;

const [SPACE, PERCENT, MINUS, ZERO, NEWLINE] = Buffer.from(" %-0\n");

const write = writeSync; // the code may be given another

/** What is held of both streams. */
class Held {
  #words;
  #bytes;
  #taken = Buffer.alloc(ROOM); // what is being written

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
    this.#wake();
    return true;
  }

  /**
   * Holds the line that Node prints for texts of ASCII characters, whole numbers of 32
   * bits and booleans, or reports that it takes more to print these values. It makes no
   * string for that: each is garbage, and in a sandbox, memory that is touched for the
   * first time is dear.
   */
  addLine(descriptor, values) {
    if (this.#words[descriptor] + LINE > ROOM) this.flush();
    this.#lock(CHANGING);
    const end = lineAt(this.#bytes[descriptor - 1], this.#words[descriptor], values);
    if (end) Atomics.store(this.#words, descriptor, end);
    this.#unlock(CHANGING);
    if (end) this.#wake();
    return end > 0;
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
    const size = this.#bytes[descriptor - 1].copy(this.#taken, 0, 0, this.#words[descriptor]);
    Atomics.store(this.#words, descriptor, 0);
    this.#unlock(CHANGING);
    let data = this.#taken.subarray(0, size);
    while (data.length) data = data.subarray(whenReady(() => write(descriptor, data)));
  }

  /** Tells the thread that writes that something waits. */
  #wake() {
    if (Atomics.exchange(this.#words, WAITING, 1) === 0) Atomics.notify(this.#words, WAITING);
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

/** Puts a line for values at a place in `bytes`; returns where it ends, or 0 where it takes more to print them. */
function lineAt(bytes, start, values) {
  const most = start + LINE - DIGITS - 1;
  let at = start;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) bytes[at++] = SPACE;
    if (typeof value === "number") at = numberAt(bytes, at, value);
    else if (typeof value === "string") at = at + value.length > most ? 0 : textAt(bytes, at, value, i === 0 && values.length > 1);
    else if (typeof value === "boolean") at = textAt(bytes, at, value ? "true" : "false", false);
    else return 0;
    if (at === 0 || at > most) return 0;
  }
  bytes[at] = NEWLINE;
  return at + 1;
}

/** Puts a text of ASCII characters at a place; returns where it ends, or 0. A format has a percent sign that Node may replace. */
function textAt(bytes, at, text, isFormat) {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f || (isFormat && code === PERCENT)) return 0;
    bytes[at++] = code;
  }
  return at;
}

/** Puts a whole number of 32 bits at a place, in decimal digits; returns where it ends, or 0. */
function numberAt(bytes, at, value) {
  if ((value | 0) !== value || Object.is(value, -0) || inspect.defaultOptions.numericSeparator) return 0;
  let rest = value;
  if (rest < 0) bytes[at++] = MINUS;
  let end = at;
  do {
    end++;
    rest = (rest / 10) | 0;
  } while (rest !== 0);
  rest = value;
  for (let i = end - 1; i >= at; i--) {
    const digit = rest % 10;
    bytes[i] = ZERO + (digit < 0 ? -digit : digit);
    rest = (rest / 10) | 0;
  }
  return end;
}

module.exports = { Held };
