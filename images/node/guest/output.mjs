// Streams that cost little and lose nothing when the program is killed.
//
// Node queues what a pipe has no room for. Then process.exit loses it, and code
// that prints faster than anybody reads fills the memory. So what is printed now and
// then is written at once, with one system call. Code that prints a lot has used up
// its share of those soon (BURST): from then on its output is held in shared memory
// for some milliseconds, and then written by a thread of its own (pump.cjs), which
// no endless loop of the code delays. What ends the process or lets another one
// print writes what is held first.

import childProcess from "node:child_process";
import { Console } from "node:console";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Worker } from "node:worker_threads";
import { whenReady } from "./blocking.cjs";
import { Held } from "./held.cjs";

const { writeSync } = fs; // the code may be given another
const toBytes = Buffer.from;

const BURST = 256; // writes that may be made at once: starting the thread costs as much as several hundred
const REGAINED = 2; // more of them each time that the thread has written

const PRINT = Symbol("print");

let held = null; // what waits to be written; null while nothing ever did, false where nothing may

/** Makes process.stdout, process.stderr and the console lose nothing. Streams have no public switch for that. */
export function writeAtOnce() {
  for (const stream of [process.stdout, process.stderr]) {
    const print = printer(stream.fd);
    stream._handle?.setBlocking?.(true);
    stream._writev = null;
    stream._write = (chunk, encoding, done) => {
      let failure;
      try {
        print(chunk, encoding);
      } catch (cause) {
        failure = cause;
      }
      done(failure);
    };
    stream[PRINT] = print;
  }
  replaceConsole();
}

/** Returns what prints a chunk, a string or Buffer, to a descriptor: now, or soon. */
function printer(fd) {
  let left = BURST;
  let waits = false; // something was held, and is not known to be written
  return (chunk, encoding) => {
    if (waits && held.isEmpty(fd)) {
      waits = false;
      left = Math.min(BURST, left + REGAINED);
    }
    if (left < 1 && (waits = hold(fd, chunk, encoding))) return;
    left--;
    flush();
    writeFully(fd, typeof chunk === "string" ? toBytes(chunk, encoding) : chunk);
  };
}

/**
 * Lets the console print without what each of its calls costs in Node: telling the
 * inspector, which nobody uses in here, listening for errors, and a turn through the
 * stream. A stream whose `write` the code has replaced gets what is printed.
 */
function replaceConsole() {
  const [stdout, stderr] = [process.stdout, process.stderr].map((stream) => {
    const { write } = stream;
    const print = stream[PRINT];
    delete stream[PRINT];
    const ignore = () => {};
    return {
      write(text) {
        if (stream.write === write && !stream.writableLength && !stream.writableCorked && stream.writable) {
          try {
            print(text);
          } catch {
            // The code may have closed the descriptor.
          }
          return;
        }
        stream.once("error", ignore);
        stream.write(text, ignore);
        stream.removeListener("error", ignore);
      },
    };
  });
  const quick = new Console({ stdout, stderr, colorMode: false, ignoreErrors: false });
  for (const name of Object.keys(quick)) {
    if (typeof quick[name] === "function" && typeof console[name] === "function" && name !== "Console") console[name] = quick[name];
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

/** Holds a chunk; reports whether that is possible. */
function hold(descriptor, chunk, encoding) {
  if (held === null) held = begin();
  return held ? held.add(descriptor, chunk, encoding) : false;
}

function begin() {
  try {
    const memory = new Held();
    const url = new URL("./pump.cjs", import.meta.url);
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
