// Streams that cost little and lose nothing when the program is killed.
//
// Node queues what a pipe has no room for. Then process.exit loses it, and code
// that prints faster than anybody reads fills the memory. So what is printed now and
// then is written at once, with one system call. Code that prints a lot has used up
// its share of those soon (BURST): from then on its output is held in shared memory
// for some milliseconds, and then written by a thread of its own (pump.cjs), which
// no endless loop of the code delays. What ends the process or lets another one
// print writes what is held first.

import { whenReady } from "./blocking.cjs";
import { replaceConsole } from "./console.mjs";
import { Held } from "./held.cjs";

const { getBuiltinModule } = process;
const fs = getBuiltinModule("node:fs");
const { writeSync } = fs; // the code may be given another
const toBytes = Buffer.from;

const BURST = 64; // writes that may be made at once: starting the thread costs as much as several hundred
const REGAINED = 2; // more of them each time that the thread has written

const ROUNDS = 20;
const ROUND = 50;
const NONE = -1e6; // writes that are left where none may be made at once, whatever is regained

const left = [0, BURST, BURST]; // writes that may be made at once now, by descriptor
let memory = null; // what may hold output, once it was needed
let held = null; // the same while a thread writes what is in it; null before, false where none can be started

/** Makes process.stdout, process.stderr and the console lose nothing. Streams have no public switch for that. */
export function writeAtOnce() {
  const printers = [process.stdout, process.stderr].map((stream) => {
    const { print, printLine } = printer(stream.fd);
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
    return { print, printLine };
  });
  replaceConsole(...printers);
}

/** Returns what prints to a descriptor: now, or soon. */
function printer(fd) {
  let waits = false; // something was held, and is not known to be written
  const isHeldNow = () => {
    if (waits && memory.isEmpty(fd)) {
      waits = false;
      left[fd] = Math.min(BURST, left[fd] + REGAINED);
    }
    return left[fd] < 1 && Boolean((held ??= begin()));
  };
  return {
    /** Prints a chunk, a string or Buffer. */
    print(chunk, encoding) {
      if (isHeldNow() && held.add(fd, chunk, encoding)) {
        waits = true;
        return;
      }
      left[fd]--;
      flush();
      writeFully(fd, typeof chunk === "string" ? toBytes(chunk, encoding) : chunk);
    },
    /** Prints the line of values, if it is held and is as simple as that takes; reports whether it did. */
    printLine(values) {
      if (!isHeldNow() || !held.addLine(fd, values)) return false;
      waits = true;
      return true;
    },
  };
}

/** Writes what is held. */
export function flush() {
  try {
    if (memory) memory.flush();
  } catch {
    // The code may have closed the descriptor.
  }
}

/** Reports whether the thread that writes what is held was started. */
export function writesInThread() {
  return Boolean(held);
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

/**
 * Prints into memory, often enough that the compiler of the engine has seen what
 * printing is: the first ten thousand lines of a program would take 30 ms, and the
 * next 4. Called once, while no run waits and nothing was printed.
 */
export function practise() {
  held = memory = new Held();
  left.fill(NONE);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < ROUND; i++) {
      console.log("line", i);
      console.log(`item ${i}: done`);
      process.stdout.write(`${i}\n`);
    }
    memory.discard();
  }
  held = null;
  left.fill(BURST);
}

/** Starts the thread; returns the memory that output is held in from now on, or false. */
function begin() {
  try {
    memory ??= new Held();
    const url = new URL("./pump.cjs", import.meta.url);
    const { Worker } = getBuiltinModule("node:worker_threads");
    const pump = new Worker(url, { workerData: memory.shared, execArgv: [], env: {}, stdin: false });
    pump.unref(); // it keeps no program from ending
    pump.on("error", () => {
      held = false;
    });
    flushBefore(process, "reallyExit", "abort", "kill");
    flushBefore(fs, "write", "writeSync", "writev", "writevSync");
    flushBefore(getBuiltinModule("node:child_process"), "exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync");
    getBuiltinModule("node:module").syncBuiltinESMExports();
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
