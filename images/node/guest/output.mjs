// Output that is written when the call that writes it returns.
//
// Node queues what a pipe has no room for. Then process.exit loses it, and code
// that prints faster than anybody reads fills the memory. Making the descriptor
// blocking is not enough: a write may still be cut short, as it is in gVisor.

import { writeSync } from "node:fs";
import { whenReady } from "./blocking.mjs";

const toBytes = Buffer.from;

/**
 * Makes process.stdout and process.stderr wait for their readers. They have no
 * public switch for that; `_write` is what streams are meant to be made with.
 */
export function writeAtOnce() {
  for (const stream of [process.stdout, process.stderr]) {
    const { fd } = stream;
    stream._handle?.setBlocking?.(true);
    stream._writev = null;
    stream._write = (chunk, encoding, done) => {
      let failure;
      try {
        writeFully(fd, typeof chunk === "string" ? toBytes(chunk, encoding) : chunk);
      } catch (cause) {
        failure = cause;
      }
      done(failure);
    };
  }
}

/** Writes all of `data`, a Buffer, to a descriptor. */
export function writeFully(descriptor, data) {
  while (data.length) data = data.subarray(whenReady(() => writeSync(descriptor, data)));
}

/** Writes to the real stderr, whatever the code has put in the place of process.stderr. */
export function printError(text) {
  try {
    writeFully(2, toBytes(text));
  } catch {
    // The code may have closed it.
  }
}
