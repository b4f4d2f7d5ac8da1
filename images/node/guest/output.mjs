// Streams that cost little and lose nothing when the program is killed.
//
// Node queues what a pipe has no room for. Then process.exit loses it, and code
// that prints faster than anybody reads fills the memory. So what is printed now and
// then is written at once, with one system call. Code that prints a lot has used up
// its share of those soon (BURST): from then on its output is held in shared memory
// for some milliseconds, and then written by a thread of its own (pump.mjs), which
// no endless loop of the code delays. What ends the process or lets another one
// print writes what is held first.

import childProcess from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Worker } from "node:worker_threads";
import { whenReady } from "./blocking.mjs";
import { Held } from "./held.mjs";

const { writeSync } = fs; // the code may be given another
const toBytes = Buffer.from;

const BURST = 32; // writes that may be made at once
const REGAINED = 2; // more of them each time that the thread has written

let held = null; // what waits to be written; null while nothing ever did, false where nothing may

/** Makes process.stdout and process.stderr lose nothing. They have no public switch for that. */
export function writeAtOnce() {
  for (const stream of [process.stdout, process.stderr]) {
    const { fd } = stream;
    let left = BURST;
    stream._handle?.setBlocking?.(true);
    stream._writev = null;
    stream._write = (chunk, encoding, done) => {
      let failure;
      try {
        const data = typeof chunk === "string" ? toBytes(chunk, encoding) : chunk;
        if ((held || null)?.isEmpty(fd)) left = Math.min(BURST, left + REGAINED);
        if (left >= 1 || !hold(fd, data)) {
          left--;
          flush();
          writeFully(fd, data);
        }
      } catch (cause) {
        failure = cause;
      }
      done(failure);
    };
  }
}

/** Writes what is held. */
export function flush() {
  try {
    if (held) held.flush();
  } catch {
    // The code may have closed the descriptor.
  }
}

/** Writes all of `data`, a Buffer, to a descriptor. */
export function writeFully(descriptor, data) {
  while (data.length) data = data.subarray(whenReady(() => writeSync(descriptor, data)));
}

/** Writes to the real stderr, whatever the code has put in the place of process.stderr. */
export function printError(text) {
  try {
    flush();
    writeFully(2, toBytes(text));
  } catch {
    // The code may have closed it.
  }
}

/** Holds `data`; reports whether that is possible. */
function hold(descriptor, data) {
  if (held === null) held = begin();
  return held ? held.add(descriptor, data) : false;
}

function begin() {
  try {
    const memory = new Held();
    const url = new URL("./pump.mjs", import.meta.url);
    const pump = new Worker(url, { workerData: memory.shared, execArgv: [], env: {}, stdin: false });
    pump.unref();
    pump.on("error", () => {
      held = false;
    });
    flushBefore(process, "reallyExit", "abort", "kill");
    flushBefore(fs, "write", "writeSync", "writev", "writevSync");
    flushBefore(childProcess, "exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync");
    syncBuiltinESMExports();
    return memory;
  } catch {
    return false; // no thread may be left to start
  }
}

/** Makes functions write what is held before they do what they do. */
function flushBefore(object, ...names) {
  for (const name of names) {
    const original = object[name];
    object[name] = Object.defineProperties(function (...args) {
      flush();
      return original.apply(this, args);
    }, Object.getOwnPropertyDescriptors(original));
  }
}
