// JSON (RFC 8259) for results and arguments, strict where JSON.stringify is
// silent: what JSON cannot hold is an error that names its place, never a lost
// value. BigInts keep every digit and lone surrogates become U+FFFD.

const { types } = process.getBuiltinModule("node:util");

const { stringify } = JSON;
const { isFinite: isFiniteNumber } = Number;
const { isArray } = Array;
const { toString: functionText } = Function.prototype;
const { getOwnPropertySymbols, getPrototypeOf, prototype: plain } = Object;
const { propertyIsEnumerable: isEnumerable } = plain;

const DEEPEST = 900; // levels

/** A value has no JSON form; the message has the path to it and what to write instead. */
export class NotSerializable extends TypeError {}

/**
 * Returns `value` as compact JSON text. `root` is what messages call it ("result").
 * Throws NotSerializable for what JSON cannot hold: NaN and infinities, functions,
 * promises, Maps, Sets, typed arrays, plain objects with keys that are symbols, cycles.
 * As in JSON.stringify, `toJSON` is called, and undefined members are left out; undefined
 * itself becomes null.
 */
export function encode(value, root) {
  const path = [];
  try {
    return write(value, path, []) ?? "null";
  } catch (cause) {
    if (cause instanceof Problem) throw new NotSerializable(`${place(root, path)} ${cause.message}`);
    throw new NotSerializable(`${place(root, path)} cannot be read: ${describeThrown(cause)}`);
  }
}

class Problem extends Error {}

/** Returns the JSON text of a value, or undefined for what JSON.stringify leaves out. */
function write(value, path, open) {
  if (typeof value === "object" && value !== null && typeof value.toJSON === "function") {
    if (types.isDate(value) && !isFiniteNumber(value.getTime())) throw new Problem("is an invalid Date");
    value = value.toJSON(path.length ? String(path[path.length - 1]) : "");
  }
  switch (typeof value) {
    case "string":
      return stringify(value.toWellFormed());
    case "number":
      if (isFiniteNumber(value)) return stringify(value);
      throw new Problem(`is ${value}, which JSON cannot hold: use null or a string`);
    case "boolean":
      return value ? "true" : "false";
    case "bigint":
      return `${value}`;
    case "undefined":
      return undefined;
    case "function":
      throw new Problem(
        /^class\b/.test(functionText.call(value))
          ? `is the class ${value.name || "(anonymous)"}, which JSON cannot hold: make an object of it and take what ` +
            `its method returns, as in await new ${value.name || "X"}().run()`
          : `is the function ${value.name || "(anonymous)"}, which JSON cannot hold: call it, or leave it ` +
            `out${value.length ? " (one that is exported is called where it takes no parameters)" : ""}`,
      );
    case "symbol":
      throw new Problem("is a symbol, which JSON cannot hold: use String(x)");
  }
  if (value === null) return "null";
  return writeObject(value, path, open);
}

function writeObject(value, path, open) {
  const instead = refusal(value);
  if (instead) throw new Problem(instead);
  if (types.isBoxedPrimitive(value)) return write(value.valueOf(), path, open);
  if (open.includes(value)) throw new Problem("contains itself: JSON cannot hold a cycle");
  if (open.length >= DEEPEST) {
    path.length = 0;
    throw new Problem(`is nested deeper than ${DEEPEST} levels: flatten it`);
  }
  open[open.length] = value; // not push: the code may have replaced it
  const text = isArray(value) ? writeArray(value, path, open) : writeMembers(value, path, open);
  open.length--;
  return text;
}

function writeArray(value, path, open) {
  let text = "[";
  for (let i = 0; i < value.length; i++) {
    path[path.length] = i;
    text += (i ? "," : "") + (write(value[i], path, open) ?? "null");
    path.length--;
  }
  return text + "]";
}

function writeMembers(value, path, open) {
  const symbol = symbolOf(value);
  if (symbol) {
    throw new Problem(
      `has the key ${symbol.toString()}, a symbol, which JSON cannot hold: use a string as the key, or delete it`,
    );
  }
  let text = "{";
  for (const key of Object.keys(value)) {
    path[path.length] = key;
    const member = write(value[key], path, open);
    if (member !== undefined) text += `${text === "{" ? "" : ","}${stringify(key.toWellFormed())}:${member}`;
    path.length--;
  }
  return text + "}";
}

/**
 * Returns a key of a plain object that is a symbol, which JSON would omit. Values that an object
 * of a class keeps under symbols, as fs.Dirent does, are for its methods.
 */
function symbolOf(value) {
  const above = getPrototypeOf(value);
  if (above !== plain && above !== null) return undefined;
  const symbols = getOwnPropertySymbols(value);
  for (let i = 0; i < symbols.length; i++) {
    if (isEnumerable.call(value, symbols[i])) return symbols[i];
  }
  return undefined;
}

/** Returns why JSON cannot hold an object and what to write instead, or "". */
function refusal(value) {
  if (types.isPromise(value)) {
    const call = value.airlockCall;
    return call
      ? `is the promise of ${call}(...), which was not awaited: write \`await ${call}(...)\``
      : "is a promise, which JSON cannot hold: await it, and an array of promises with `await Promise.all(…)`";
  }
  if (types.isMap(value)) return "is a Map, which JSON cannot hold: use Object.fromEntries(x)";
  if (types.isSet(value)) return "is a Set, which JSON cannot hold: use [...x]";
  if (types.isWeakMap(value) || types.isWeakSet(value)) return "is a weak collection, which JSON cannot hold";
  if (types.isArrayBufferView(value) || types.isAnyArrayBuffer(value)) {
    return "is binary data, which JSON cannot hold: use Buffer.from(x).toString('base64') or Array.from(x)";
  }
  if (types.isNativeError(value)) return "is an Error, which JSON cannot hold: use String(x)";
  if (types.isRegExp(value)) return "is a RegExp, which JSON cannot hold: use String(x)";
  if (types.isGeneratorObject(value)) return "is a generator, which JSON cannot hold: use [...x]";
  if (typeof value.next === "function" && typeof value[Symbol.iterator] === "function") {
    return "is an iterator, which JSON cannot hold: use [...x]";
  }
  return "";
}

/** Writes a path as one would write it in code, cut in the middle when long. */
function place(root, path) {
  const steps = path.map((key) =>
    typeof key === "number"
      ? `[${key}]`
      : /^[A-Za-z_$][\w$]*$/.test(key)
        ? `.${shorten(key)}`
        : `[${stringify(shorten(key))}]`,
  );
  if (steps.length > 20) steps.splice(10, steps.length - 20, "…");
  return root + steps.join("");
}

function shorten(key) {
  return key.length <= 60 ? key : `${key.slice(0, 57)}...`;
}

function describeThrown(cause) {
  try {
    return String(cause);
  } catch {
    return "it threw something that cannot be shown";
  }
}
