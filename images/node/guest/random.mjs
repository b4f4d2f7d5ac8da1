// A Math.random that no two sandboxes share. V8's own draws from a state that a
// sandbox restored from a checkpoint has in common with its siblings.

import { randomFillSync } from "node:crypto";

const POOL = new Uint32Array(512);
let next = POOL.length;

/** Replaces Math.random by one that is fed by the system's random generator. */
export function replaceRandom() {
  const { random } = {
    random() {
      if (next >= POOL.length) {
        randomFillSync(POOL);
        next = 0;
      }
      // 53 random bits, as many as a double between 0 and 1 holds.
      return ((POOL[next++] >>> 5) * 67108864 + (POOL[next++] >>> 6)) / 9007199254740992;
    },
  };
  Object.defineProperty(Math, "random", { value: random, writable: true, enumerable: false, configurable: true });
}
