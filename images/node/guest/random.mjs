// A Math.random that no two sandboxes share. V8's own cannot be reseeded, and a
// sandbox restored from a checkpoint has its state in common with its siblings.
// For node:crypto, see openssl.cnf.

const { closeSync, openSync, readSync } = process.getBuiltinModule("node:fs");
const vm = process.getBuiltinModule("node:vm");
const { createContext, isContext, runInContext } = vm;

/** Makes Math.random xoshiro128++ (Blackman and Vigna, 2019), seeded by the kernel. */
export function reseedMathRandom() {
  replaceMathRandom(...seed());
}

/** Does the same in each context that node:vm makes from now on. */
export function seedNewContexts() {
  vm.createContext = function (object, options) {
    if (isObject(object) && isContext(object)) return createContext(object, options);
    const context = createContext(object, options);
    seedContext(context);
    return context;
  };
  for (const [of, name, at] of [[vm, "runInNewContext", 1], [vm.Script.prototype, "runInNewContext", 0]]) {
    const original = of[name];
    of[name] = function (...args) {
      args[at] = newContext(args[at], args[at + 1]);
      return original.apply(this, args);
    };
  }
  process.getBuiltinModule("node:module").syncBuiltinESMExports();
}

/** Returns the context for an object that is not one yet, with the options of runInNewContext. */
function newContext(object, options) {
  if (isObject(object) && isContext(object)) return object;
  const { contextName: name, contextOrigin: origin, contextCodeGeneration: codeGeneration, microtaskMode } =
    isObject(options) ? options : {};
  const given = Object.entries({ name, origin, codeGeneration, microtaskMode }).filter(([, v]) => v !== undefined);
  const context = createContext(object, Object.fromEntries(given));
  seedContext(context);
  return context;
}

function seedContext(context) {
  runInContext(`(${replaceMathRandom})(${seed().join()})`, context);
}

const isObject = (value) => typeof value === "object" && value !== null;

/** Replaces Math.random. Its text is also run in other contexts, so it refers to nothing but its arguments. */
function replaceMathRandom(a, b, c, d) {
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
