// Runs code as an ES module, as `node file.mjs` does, and notices every way in
// which it can end.

import { types } from "node:util";
import { deliver } from "./outcome.mjs";
import { FILE, writeSource } from "./source.mjs";

const { exit } = process;

/**
 * Runs `code`; when it has ended, tells the host over `link` and exits. The
 * ending that outcome.mjs judges becomes known bit by bit:
 *
 * - `settled`: the module has run to its end;
 * - `left`: process.exit was called;
 * - `failure`: `{thrown}`, what reached the top, or null;
 * - `result`: `{set, value}`, the global `result`, read by the getter `offered`.
 */
export function run(code, link) {
  const ending = { code, settled: false, left: false, failure: null, ...offerResult() };
  const fail = watch(ending, link);
  const url = writeSource(code);
  process.argv[1] = FILE;
  import(url).then(() => void (ending.settled = true), fail);
}

/**
 * Makes `result` a global from the start, so that `result = …` works in a module,
 * where assigning to an undeclared name is an error.
 */
function offerResult() {
  const result = { set: false, value: undefined };
  const offered = () => result.value;
  const set = (value) => Object.assign(result, { set: true, value });
  Object.defineProperty(globalThis, "result", { configurable: true, enumerable: true, get: offered, set });
  return { result, offered };
}

/** Listens to every end that the code can come to; returns what to call when it failed. */
function watch(ending, link) {
  const last = (status) => deliver(link, ending, status);
  // Runs after the code's own exit handlers, whenever those were added.
  const rearm = () => process.removeListener("exit", last).on("exit", last);
  const leave = (status) => {
    rearm();
    exit.call(process, status);
  };
  const fail = (thrown) => {
    ending.failure ??= { thrown };
    if (process._exiting) last(1); // an exit handler threw
    leave(1);
  };
  process.exit = (status) => {
    ending.left = true;
    leave(status);
  };
  // As in Node, the code's own handler of uncaught exceptions replaces the end.
  process.on("uncaughtException", (thrown) => {
    if (process.listenerCount("uncaughtException") === 1) fail(thrown);
  });
  let awaited;
  process.on("beforeExit", () => {
    rearm();
    // A result that is a promise counts as what it resolves to.
    const promise = globalThis.result;
    if (!types.isPromise(promise) || promise === awaited) return;
    awaited = promise;
    promise.then((value) => (globalThis.result = value));
  });
  return fail;
}
