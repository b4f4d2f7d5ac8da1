// A Math.random that no two sandboxes share. V8's own cannot be reseeded, and a
// sandbox restored from a checkpoint has its state in common with its siblings.
// For node:crypto, see openssl.cnf.

const { closeSync, openSync, readSync } = process.getBuiltinModule("node:fs");

/** Makes Math.random xoshiro128++ (Blackman and Vigna, 2019), seeded by the kernel. */
export function reseedMathRandom() {
  let [a, b, c, d] = seed();
  const draw = () => {
    const sum = (a + d) | 0;
    const drawn = (((sum << 7) | (sum >>> 25)) + a) | 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return drawn;
  };
  const { random } = {
    // 53 random bits, as many as a double between 0 and 1 holds.
    random: () => ((draw() >>> 5) * 2 ** 26 + (draw() >>> 6)) / 2 ** 53,
  };
  Object.defineProperty(Math, "random", { value: random, writable: true, enumerable: false, configurable: true });
}

/** Returns four random 32-bit integers from the kernel. */
function seed() {
  const words = new Uint32Array(4);
  const source = openSync("/dev/urandom", "r");
  readSync(source, words);
  closeSync(source);
  return words;
}
