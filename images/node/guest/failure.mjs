// Describes what the code threw: its type, its message, the traceback, what to
// do. Every part of it may be hostile: getters may throw, texts may be huge.

import { ToolError } from "/workspace/client/result.js";
import { printError } from "./output.mjs";

const { createRequire } = process.getBuiltinModule("node:module");
const { types } = process.getBuiltinModule("node:util");

const toBytes = Buffer.from;
const require = createRequire(import.meta.url);
const MAX_MESSAGE = 4 << 10; // bytes
const MAX_TRACEBACK = 8 << 10; // bytes
const MAX_PRINTED = 64 << 10; // bytes of the traceback that goes to stderr
const MOST_CAUSES = 5;

const OURS = new RegExp(
  String.raw`^\s+at .*(?:file:///opt/airlock/guest/|file:///workspace/(?:client|servers)/` +
    "|node:(?:internal/|diagnostics_channel))",
);
// The language's own functions report nothing about a failure inside a tool.
const OURS_OR_NATIVE = new RegExp(`${OURS.source}|^\\s+at [^/]*\\(<anonymous>\\)$`);
const FILE_URL = /(?:file:\/\/)?\/workspace\/agent_code\.mjs(?:\?(?:types|function|alone))?/g;
const BUILTIN = /^(?:Aggregate|Eval|Range|Reference|Syntax|Type|URI)?Error$/;

/** Returns the module that gives advice. A guest that nothing fails in need not load it. */
export function advice() {
  return require("./hints.mjs");
}

/**
 * Returns the `error` of `run/finish` for what was thrown, and prints its
 * traceback to stderr. `code` is the program's text.
 */
export function describe(thrown, code) {
  const message = rename(messageOf(thrown));
  const location = attempt(() => advice().syntaxLocation(thrown)) ?? "";
  const traceback = rename(location + tracebackOf(thrown));
  printError(`${cut(traceback, MAX_PRINTED)}\n`);
  const hint = attempt(() => advice().hint(thrown, message, code));
  const error = {
    type: typeOf(thrown),
    message: cut(
      hint ? `${cut(message, MAX_MESSAGE / 2)} (${cut(hint, MAX_MESSAGE / 2 - 3)})` : message,
      MAX_MESSAGE,
    ),
    traceback: cut(traceback, MAX_TRACEBACK),
    retryable: false,
    source: "code",
  };
  if (thrown instanceof ToolError) {
    error.type = String(thrown.type);
    error.retryable = thrown.retryable === true;
    error.source = String(thrown.source);
    if (thrown.callId !== undefined) error.call_id = String(thrown.callId);
  }
  return error;
}

/** Returns the class of an error: its name if it has one, otherwise that of its constructor. */
function typeOf(thrown) {
  return (
    attempt(() => {
      if (!isError(thrown)) return "Error";
      if (attempt(() => isDiskFull(thrown))) return "DiskLimit";
      if (thrown.code === "ERR_WORKER_OUT_OF_MEMORY" || attempt(() => isHeapFull(thrown))) return "MemoryLimit";
      if (thrown.code === "ERR_WORKER_INIT_FAILED" || (thrown.code === "EAGAIN" && /^spawn/.test(thrown.syscall))) {
        return "ProcessLimit";
      }
      const name = thrown.name;
      const made = thrown.constructor?.name;
      if (typeof name === "string" && name && !BUILTIN.test(name)) return name;
      return typeof made === "string" && made ? made : name || "Error";
    }) ?? "Error"
  );
}

/** Reports whether a full disk made the code fail: itself, a child process, or what it threw then. */
export function isDiskFull(thrown) {
  for (let error = thrown, i = 0; isError(error) && i < MOST_CAUSES; error = error.cause, i++) {
    if (error.code === "ENOSPC" || /\bENOSPC\b|No space left on device|disk is full/.test(error.message)) return true;
  }
  return false;
}

/** Reports whether a child process has failed because its heap was full. */
function isHeapFull(thrown) {
  return thrown.signal === "SIGABRT" && /heap out of memory/.test(thrown.message);
}

function isError(thrown) {
  return types.isNativeError(thrown) || thrown instanceof Error;
}

function messageOf(thrown) {
  try {
    if (!isError(thrown)) {
      return `the code threw ${typeof thrown === "string" ? "the string " : ""}${show(thrown)}, not an Error`;
    }
    let message = String(thrown.message);
    if (Array.isArray(thrown.errors)) {
      message += thrown.errors
        .slice(0, MOST_CAUSES)
        .map((each) => `; ${String(each)}`)
        .join("");
    }
    return message;
  } catch (broken) {
    return `(the message cannot be shown: reading it threw ${typeOf(broken)})`;
  }
}

function show(value) {
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Event) return `an event of the type ${value.type}${value.message ? `: ${value.message}` : ""}`;
  return attempt(() => JSON.stringify(value)) ?? "an object";
}

/** Returns the stack of an error and of its causes, without frames of the guest, the client and the wrappers. */
function tracebackOf(thrown) {
  const parts = [];
  for (let error = thrown; isError(error) && parts.length < MOST_CAUSES; error = attempt(() => error.cause)) {
    const stack = attempt(() => error.stack);
    const text = typeof stack === "string" ? stack : `${typeOf(error)}: ${messageOf(error)}`;
    const hidden = error instanceof ToolError ? OURS_OR_NATIVE : OURS;
    const lines = text.split("\n").filter((line) => !hidden.test(line));
    parts.push(lines.join("\n"));
  }
  return parts.length ? parts.join("\nCaused by: ") : `Uncaught ${attempt(() => show(thrown)) ?? "value"}`;
}

function rename(text) {
  return text.replace(FILE_URL, "<agent_code>");
}

function attempt(operation) {
  try {
    return operation();
  } catch {
    return undefined;
  }
}

/** Shortens text to about `limit` bytes of UTF-8 by taking out its middle. */
function cut(text, limit) {
  const data = toBytes(text.toWellFormed());
  if (data.length <= limit) return data.toString();
  const half = Math.max(Math.floor(limit / 2) - 30, 0);
  const head = data
    .subarray(0, half)
    .toString()
    .replace(/\uFFFD$/, "");
  const tail = data
    .subarray(data.length - half)
    .toString()
    .replace(/^\uFFFD+/, "");
  return `${head}\n[... ${data.length - 2 * half} bytes cut ...]\n${tail}`;
}
