// Output that waits in memory until it is written, both streams of it.

import { whenReady } from "./blocking.mjs";

const { getBuiltinModule } = process;
const { writeSync: write } = getBuiltinModule("node:fs"); // the code may be given another
const { inspect } = getBuiltinModule("node:util");

const ROOM = 256 << 10; // bytes for each descriptor
const LINE = 1 << 10; // bytes of a line that is held piece by piece, at most
const DIGITS = 11; // of a whole number of 32 bits, with its sign
const STREAMS = [1, 2];

const [SPACE, PERCENT, MINUS, ZERO, NEWLINE] = Buffer.from(" %-0\n");

/** The held output of both streams. */
export class Held {
  #sizes = [0, 0, 0]; // by descriptor
  #bytes = [null, Buffer.alloc(ROOM), Buffer.alloc(ROOM)];
  #targets;

  /** Makes what holds output until it is written to `targets`, descriptors by stream. */
  constructor(targets) {
    this.#targets = targets;
  }

  /** Reports whether nothing of a stream is held. */
  isEmpty(descriptor) {
    return this.#sizes[descriptor] === 0;
  }

  /** Holds a chunk, a string or Buffer, or reports that it is too large for that. */
  add(descriptor, chunk, encoding = "utf8") {
    const text = typeof chunk === "string";
    const most = text ? chunk.length * 3 : chunk.length; // bytes, in any encoding
    if (most > ROOM / 2) return false;
    if (this.#sizes[descriptor] + most > ROOM) this.flush();
    const size = this.#sizes[descriptor];
    const bytes = this.#bytes[descriptor];
    this.#sizes[descriptor] = size + (text ? bytes.write(chunk, size, encoding) : chunk.copy(bytes, size));
    return true;
  }

  /**
   * Holds the line that Node prints for texts of ASCII characters, whole numbers of 32
   * bits and booleans, or reports that it takes more to print these values. It makes no
   * string for that: each is garbage, and in a sandbox, memory that is touched for the
   * first time is dear.
   */
  addLine(descriptor, values) {
    if (this.#sizes[descriptor] + LINE > ROOM) this.flush();
    const end = lineAt(this.#bytes[descriptor], this.#sizes[descriptor], values);
    if (end === 0) return false;
    this.#sizes[descriptor] = end;
    return true;
  }

  /** Writes all that is held; returns when it is written. */
  flush() {
    for (const descriptor of STREAMS) {
      let data = this.#bytes[descriptor].subarray(0, this.#sizes[descriptor]);
      this.#sizes[descriptor] = 0;
      try {
        while (data.length) data = data.subarray(whenReady(() => write(this.#targets[descriptor], data)));
      } catch {
        // The code may have closed the descriptor.
      }
    }
  }
}

/** Puts a line for values at a place in `bytes`; returns the end offset, or 0 for values that need more work. */
function lineAt(bytes, start, values) {
  const most = start + LINE - DIGITS - 1;
  let at = start;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) bytes[at++] = SPACE;
    if (typeof value === "number") at = numberAt(bytes, at, value);
    else if (typeof value === "string") {
      at = at + value.length > most ? 0 : textAt(bytes, at, value, i === 0 && values.length > 1);
    } else if (typeof value === "boolean") at = textAt(bytes, at, value ? "true" : "false", false);
    else return 0;
    if (at === 0 || at > most) return 0;
  }
  bytes[at] = NEWLINE;
  return at + 1;
}

/** Writes ASCII text at an offset; returns the end offset, or 0. A format has a percent sign that Node may replace. */
function textAt(bytes, at, text, isFormat) {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f || (isFormat && code === PERCENT)) return 0;
    bytes[at++] = code;
  }
  return at;
}

/** Puts a whole number of 32 bits at a place, in decimal digits; returns the end offset, or 0. */
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
