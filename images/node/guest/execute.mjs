// Runs code as an ES module, as `node file.mjs` does, and notices every way in
// which it can end.

import { advice } from "./failure.mjs";
import { FILE } from "./file.mjs";
import { notice } from "./interrupt.mjs";
import { deliver, report, resultOf } from "./outcome.mjs";
import { asFunction, isTyped, resultVariable, withoutFence, withoutTypes, withResult } from "./source.mjs";

const { unlinkSync, writeFileSync } = process.getBuiltinModule("node:fs");
const module = process.getBuiltinModule("node:module");
const { fileURLToPath, pathToFileURL } = process.getBuiltinModule("node:url");
const { types } = process.getBuiltinModule("node:util");

const { exit, listenerCount } = process;
const { toString: functionText } = Function.prototype;

// The global `result`. It is there from the start, so that `result = …` works in a
// module, where assigning to an undeclared name is an error.
const result = { set: false, value: undefined };
const offered = () => result.value;
const set = (value) => Object.assign(result, { set: true, value });
Object.defineProperty(globalThis, "result", { configurable: true, enumerable: true, get: offered, set });

/**
 * Runs `code`; when it has ended, reports to the host over `link` and exits. The
 * ending that outcome.mjs judges becomes known bit by bit:
 *
 * - `settled`: the module has run to its end, top-level awaits included;
 * - `drained`: nothing was left to do, so the code ended by itself;
 * - `failure`: `{thrown}`, what reached the top, or null;
 * - `result`: `{set, value}`, the global `result`, read by the getter `offered`;
 * - `namespace`: the exports of the module, once it is evaluated;
 * - `exported`: `{value}`, the result of its default export, or null;
 * - `session`: the files that are kept for the session's next run, if any are.
 */
export function run(code, link, session) {
  const ending = begin(withoutFence(code));
  ending.session = session;
  const fail = watch(ending, link);
  process.argv[1] = FILE;
  writeFileSync(FILE, ending.code);
  evaluate(ending, FILE).then(() => void (ending.settled = true), fail);
}

let rehearsals = 0;

/**
 * Executes a small rehearsal program, like a run of a session, that leaves nothing
 * behind, so that what every run needs is compiled, and mapped: a restored sandbox has its
 * memory, but each page of it costs a fault when it is first touched.
 */
export async function rehearse(session) {
  const file = `${FILE}.rehearsal${++rehearsals}.mjs`; // a module is loaded once
  const ending = begin(withoutFence("globalThis.result = { rehearsed: [1, null] };"));
  ending.session = session;
  const { emit } = process;
  watch(ending, null);
  writeFileSync(file, ending.code);
  await evaluate(ending, file);
  process.emit("rehearsal");
  process.emit = emit;
  awaitResult(ending);
  report({ finish() {} }, ending);
  advice();
  unlinkSync(file);
  Object.assign(result, { set: false, value: undefined });
}

/** Returns the ending of a program that has not begun. */
function begin(code) {
  const unknown = { failure: null, namespace: null, exported: null, session: undefined };
  return { code, settled: false, drained: false, result, offered, ...unknown };
}

/**
 * Evaluates the program of an ending, which is in `file`: unchanged, without its types if it does not
 * parse with them, or as the body of a function if it returns. A text that does
 * not parse has done nothing.
 */
async function evaluate(ending, file) {
  const { href } = pathToFileURL(file);
  const { code } = ending;
  try {
    ending.namespace = await load(href, withResult(isTyped(code) ? stripped(code) : code));
  } catch (thrown) {
    if (!isParseError(thrown)) throw thrown;
    const plain = stripped(code);
    // If the code parses alone, the text after it is not at fault.
    if (plain === code && /'export'/.test(thrown.message)) await load(`${href}?alone`, code);
    if (plain !== code) ending.namespace = await load(`${href}?types`, withResult(plain));
    else if (!code.includes("return")) throw thrown;
    else {
      ending.namespace = await load(`${href}?function`, stripped(asFunction(code))).catch((again) => {
        throw isParseError(again) ? thrown : again;
      });
    }
  }
  await takeExport(ending);
}

/** Returns the code without TypeScript's types, or as it is where Node cannot read it as TypeScript. */
function stripped(code) {
  try {
    return withoutTypes(code);
  } catch (refused) {
    if (refused.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw refused;
    return code;
  }
}

/** Reports whether a module did not start. Later failures have frames of the code. */
function isParseError(thrown) {
  return thrown instanceof SyntaxError && !/^\s+at .*agent_code\.mjs/m.test(thrown.stack);
}

/** Uses the default export as the result if there is no other; calls it if it is a function without parameters. */
async function takeExport(ending) {
  const { namespace } = ending;
  if (result.set || resultVariable(namespace) !== undefined || !("default" in namespace)) return;
  let value = namespace.default;
  const method = methodOf(value);
  if (method) value = value[method]();
  else if (typeof value === "function" && value.length === 0 && !isClass(value)) value = value();
  value = await value;
  if (value !== undefined) ending.exported = { value };
}

/** Returns the name of an object's only member if it is a function to be run: `export default { async run() {} }`. */
function methodOf(value) {
  if (typeof value !== "object" || value === null) return "";
  const [name, ...more] = Object.keys(value);
  if (more.length > 0 || !/^(?:run|main|execute|handler|default|start)$/.test(name)) return "";
  return typeof value[name] === "function" && value[name].length === 0 ? name : "";
}

function isClass(value) {
  return functionText.call(value).startsWith("class");
}

/** Loads `source` as the ES module `href`; the promise settles with its evaluation. */
function load(href, source) {
  // Saves Node from reading files that are already loaded. Before version 22 it does.
  const hooks = module.registerHooks?.({
    resolve: (url, context, next) =>
      url === href ? { url, format: "module", shortCircuit: true } : next(url, context),
    load(url, context, next) {
      if (url !== href) return next(url, context);
      hooks.deregister();
      return { format: "module", source, shortCircuit: true };
    },
  });
  if (!hooks) writeFileSync(fileURLToPath(href), source);
  return import(href);
}

/**
 * Notices every end that the code can come to; returns what to call when it failed.
 *
 * Node announces each of them through process.emit. Replacing that, instead of
 * listening, puts us behind all handlers of the code's own, whenever it adds them,
 * and keeps us when it removes all listeners.
 */
function watch(ending, link) {
  const fail = (thrown) => {
    ending.failure ??= { thrown };
    if (process._exiting) deliver(link, ending); // an exit handler threw
    exit.call(process, 1);
  };
  const { emit } = process;
  let awaited;
  process.emit = function (event, ...details) {
    if (notice(event, details[0])) return true;
    // As in Node, the code's own handler of uncaught exceptions replaces the end.
    if (event === "uncaughtException" && process.listenerCount(event) === 0) fail(details[0]);
    const heard = emit.call(process, event, ...details);
    if (event === "exit") deliver(link, ending);
    if (event === "beforeExit") {
      ending.drained = true;
      const before = awaited;
      awaited = awaitResult(ending, before);
      // Nothing is left, and the code has no listener for the end.
      const over = awaited === before && !listenerCount.call(process, event) && !listenerCount.call(process, "exit");
      if (over) deliver(link, ending);
    }
    return heard;
  };
  return fail;
}

/** Waits for a result that is a promise: it counts as what it resolves to. Returns that promise. */
function awaitResult(ending, awaited) {
  const promise = resultOf(ending).value;
  if (!types.isPromise(promise) || promise === awaited) return awaited;
  promise.then((value) => (globalThis.result = value));
  return promise;
}
