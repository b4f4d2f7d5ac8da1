// Turns how the code ended into the params of `run/finish`, delivers them, and
// exits. It runs after the last exit handler: nothing asynchronous happens any more.

import { encode, NotSerializable } from "/workspace/client/encode.js";
import { describe } from "./failure.mjs";
import { note, NOTHING } from "./notes.mjs";
import { flush } from "./output.mjs";
import { resultVariable } from "./source.mjs";

const MAX_PARAMS = (16 << 20) - 1024; // bytes; the rest of a frame is for its other members
const TRIES = 2;

// Exit status when the code has left an interpreter that can report nothing.
// The host then reports that the program ended without delivering a result.
const BROKEN = 71;

// What Node itself exits with when a top-level await never settles.
const UNSETTLED = 13;

// The advice for a result that is too large. The host has the same sentence.
const ADVICE = "return a summary, and hand over the rest with client.attach or keep it in /workspace/session for the " +
  "next run";

const LAST_WORDS =
  '{"ok":false,"error":{"type":"SandboxError","message":"the code has ended, but it broke its interpreter so far ' +
    'that nothing more can be said","source":"code"}}';

const { byteLength } = Buffer;
const { stringify } = JSON;
const reallyExit = process.reallyExit.bind(process);
const { getOwnPropertyDescriptor } = Object;

/** Tells the host how the code ended, and exits. */
export function deliver(link, ending) {
  for (let i = 0; i < TRIES; i++) {
    try {
      report(link, ending);
      reallyExit(0);
    } catch {
      // If the code has broken the globals: try again with less detail.
    }
  }
  try {
    save(ending);
    flush();
    link.finish(LAST_WORDS);
    reallyExit(0);
  } catch {
    reallyExit(BROKEN);
  }
}

/** Tells the host how the code ended. */
export function report(link, ending) {
  const text = params(ending);
  save(ending); // after the params, because a large result is kept in a file
  flush();
  link.finish(text);
}

/** Saves the session's files, once. */
function save(ending) {
  const { session } = ending;
  ending.session = undefined;
  session?.save();
}

/** Returns the params of `run/finish` for an ending, as JSON text. */
function params(ending) {
  if (ending.failure) return failed(describe(ending.failure.thrown, ending.code));
  const status = Number(process.exitCode ?? 0);
  if (status) return exited(status, `the code ended with exit code ${status}; what it caught may stand in stderr`);
  if (!ending.settled && ending.drained) {
    const why = /\breadline\b|\bstdin\b/.test(ending.code)
      ? "stdin is empty in here: put the values into the code"
      : "nothing was left that could resolve its promise";
    return exited(UNSETTLED, `a top-level await never settled: ${why}`);
  }
  return succeeded(ending);
}

function exited(status, message) {
  return failed({ type: "NonZeroExit", message, source: "code" }, status);
}

function succeeded(ending) {
  const result = resultOf(ending);
  if (!result.set) return `{"ok":true,"has_result":false,"note":${stringify(note(ending.code, ending.settled))}}`;
  let data;
  try {
    data = encode(result.value, "result");
  } catch (problem) {
    if (!(problem instanceof NotSerializable)) throw problem;
    return failed({ type: "ResultNotSerializable", message: problem.message, source: "code" });
  }
  const remark = result.value === undefined ? `,"note":${stringify(NOTHING)}` : "";
  const text = `{"ok":true,"has_result":true,"data":${data}${remark}}`;
  const size = byteLength(text);
  if (size <= MAX_PARAMS) return text;
  const kept = ending.session?.keepResult(data);
  const advice = kept ? `all of it is in ${kept}: read that file, and return a summary` : ADVICE;
  const message = `the result takes ${size} bytes as JSON, far more than a run returns; ${advice}`;
  return failed({ type: "OutputLimit", message, source: "code" });
}

/**
 * Returns the result of the code as `{set, value}`: the global `result`, also where
 * the code has defined a property for it; otherwise the module's variable of
 * that name; else its default export.
 */
export function resultOf(ending) {
  const own = getOwnPropertyDescriptor(globalThis, "result");
  if (own && own.get !== ending.offered) return { set: true, value: globalThis.result };
  if (own && ending.result.set) return ending.result;
  const value = resultVariable(ending.namespace);
  if (value !== undefined) return { set: true, value };
  return ending.exported ? { set: true, value: ending.exported.value } : { set: false };
}

function failed(error, exitCode) {
  const extra = exitCode === undefined ? "" : `,"exit_code":${exitCode}`;
  return `{"ok":false,"error":${encode(error, "error")}${extra}}`;
}
