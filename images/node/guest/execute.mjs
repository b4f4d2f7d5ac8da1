// Runs code as an ES module, as `node file.mjs` does, and notices every way in
// which it can end.

import { unlinkSync, writeFileSync } from "node:fs";
import module from "node:module";
import { pathToFileURL } from "node:url";
import { types } from "node:util";
import { FILE } from "./file.mjs";
import { deliver, params } from "./outcome.mjs";

const { exit, listenerCount } = process;

// The global `result`. It is there from the start, so that `result = …` works in a
// module, where assigning to an undeclared name is an error.
const result = { set: false, value: undefined };
const offered = () => result.value;
const set = (value) => Object.assign(result, { set: true, value });
Object.defineProperty(globalThis, "result", { configurable: true, enumerable: true, get: offered, set });

/**
 * Runs `code`; when it has ended, tells the host over `link` and exits. The
 * ending that outcome.mjs judges becomes known bit by bit:
 *
 * - `settled`: the module has run to its end, top-level awaits included;
 * - `drained`: nothing was left to do, so the code ended by itself;
 * - `failure`: `{thrown}`, what reached the top, or null;
 * - `result`: `{set, value}`, the global `result`, read by the getter `offered`.
 */
export function run(code, link) {
  const ending = begin(code);
  const fail = watch(ending, link);
  process.argv[1] = FILE;
  load(FILE, code).then(() => void (ending.settled = true), fail);
}

/**
 * Goes the way of a run once, with a small program that leaves nothing behind, so
 * that what every run needs is compiled, and mapped: a restored sandbox has its
 * memory, but each page of it costs a fault when it is first touched.
 */
export async function rehearse() {
  const file = `${FILE}.rehearsal.mjs`;
  const ending = begin("globalThis.result = { rehearsed: [1, null] };");
  const { emit } = process;
  watch(ending, null);
  await load(file, ending.code);
  process.emit("rehearsal");
  process.emit = emit;
  params(ending);
  unlinkSync(file);
  Object.assign(result, { set: false, value: undefined });
}

/** Returns the ending of a program that has not begun. */
function begin(code) {
  return { code, settled: false, drained: false, failure: null, result, offered };
}

/** Loads `code` as the ES module `file`; the promise settles with it. */
function load(file, code) {
  writeFileSync(file, code);
  const { href } = pathToFileURL(file);
  // Node need not look for, and read, what was just written. Before version 22 it does.
  const hooks = module.registerHooks?.({
    resolve: (url, context, next) => (url === href ? { url, format: "module", shortCircuit: true } : next(url, context)),
    load(url, context, next) {
      if (url !== href) return next(url, context);
      hooks.deregister();
      return { format: "module", source: code, shortCircuit: true };
    },
  });
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
    // As in Node, the code's own handler of uncaught exceptions replaces the end.
    if (event === "uncaughtException" && process.listenerCount(event) === 0) fail(details[0]);
    const heard = emit.call(process, event, ...details);
    if (event === "exit") deliver(link, ending);
    if (event === "beforeExit") {
      ending.drained = true;
      const before = awaited;
      awaited = awaitResult(before);
      // Nothing is left, and nobody of the code's waits for the end.
      const over = awaited === before && !listenerCount.call(process, event) && !listenerCount.call(process, "exit");
      if (over) deliver(link, ending);
    }
    return heard;
  };
  return fail;
}

/** Waits for a result that is a promise: it counts as what it resolves to. Returns that promise. */
function awaitResult(awaited) {
  const promise = globalThis.result;
  if (!types.isPromise(promise) || promise === awaited) return awaited;
  promise.then((value) => (globalThis.result = value));
  return promise;
}
