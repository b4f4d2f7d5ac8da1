// Blocking reads and writes on descriptors that are not.

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Calls `operation`, a read or write, until the descriptor is ready for it; returns what it returns. */
export function whenReady(operation) {
  for (;;) {
    try {
      return operation();
    } catch (cause) {
      if (cause.code !== "EAGAIN") throw cause;
      Atomics.wait(pause, 0, 0, 0.05); // milliseconds
    }
  }
}
