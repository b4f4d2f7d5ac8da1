// Streams that cost little and lose nothing when the program is killed.
//
// Node queues what a pipe has no room for. Then process.exit loses it, and code
// that prints faster than anybody reads fills the memory. So what is printed now and
// then is written at once, with one system call. Code that prints a lot has used up
// its share of those soon (BURST): from then on its output is held in memory
// (held.mjs) for some milliseconds. It is written when the event loop turns, before
// calls that end the process, let another one print or may block for long (before.mjs), and
// at an interruption by the host (interrupt.mjs), which no endless loop of the code delays.

import { callBefore, callBeforeNew } from "./before.mjs";
import { whenReady } from "./blocking.mjs";
import { replaceConsole } from "./console.mjs";
import { Held } from "./held.mjs";
import { ask, endInterruptions, listen } from "./interrupt.mjs";

const { getBuiltinModule } = process;
const { closeSync, openSync, writeSync } = getBuiltinModule("node:fs"); // the code may be given others
const { setImmediate } = globalThis;
const toBytes = Buffer.from;

const BURST = 16; // writes that may be made at once: asking the host costs as much as some
const REGAINED = 2; // more of them each time that what was held is written

const STREAMS = [1, 2];
const GARBAGE = 2000; // elements at a time
const MOST_GARBAGE = 1e7; // elements
const ROUNDS = 400;
const ROUND = 40;

const targets = [0, 1, 2]; // the destination of the streams
const left = [0, BURST, BURST]; // writes that may be made at once now, by descriptor
const waits = [false, false, false]; // something was held, and is not known to be written, by descriptor
const holding = [false, false, false]; // whether output is held, without asking the host again, by descriptor
let held = null; // the holder of output, once it is needed
let willTurn = false; // held output is written when the event loop turns
let busy = false; // something is being held or written: an interruption must not write now
let late = false; // one came meanwhile

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

/** Lets output be held from now on, because the host can be asked over `link` to interrupt the code. */
export function holdOutput(link) {
  listen(link, flush);
}

/** Returns what prints to a descriptor: now, or soon. */
function printer(fd) {
  return {
    /** Prints a chunk, a string or Buffer. */
    print(chunk, encoding) {
      const outermost = begin();
      try {
        if (isHeldNow(fd) && held.add(fd, chunk, encoding)) {
          if (!holding[fd]) hold(fd);
          return;
        }
        left[fd]--;
        held?.flush();
        writeFully(targets[fd], typeof chunk === "string" ? toBytes(chunk, encoding) : chunk);
      } finally {
        if (outermost) end();
      }
    },
    /** Prints the line of values, if it is held and is as simple as that takes; reports whether it did. */
    printLine(values) {
      const outermost = begin();
      try {
        if (!isHeldNow(fd) || !held.addLine(fd, values)) return false;
        if (!holding[fd]) hold(fd);
        return true;
      } finally {
        if (outermost) end();
      }
    },
  };
}

/** Reports whether what is printed now is held. */
function isHeldNow(fd) {
  return holding[fd] || decide(fd);
}

/** Decides whether what is printed is held from now on. */
function decide(fd) {
  if (waits[fd] && held.isEmpty(fd)) {
    waits[fd] = false;
    left[fd] = Math.min(BURST, left[fd] + REGAINED);
  }
  if (left[fd] > 0 || !ask()) return false;
  held ??= prepare();
  return true;
}

/** Notes that something of a descriptor is held from now on. */
function hold(fd) {
  waits[fd] = holding[fd] = true;
  callBeforeNew(flush);
  if (willTurn) return;
  willTurn = true;
  setImmediate(turn);
}

/** Is called when the event loop turns. */
function turn() {
  willTurn = false;
  flush();
}

/** Writes what is held. */
export function flush() {
  if (!begin()) {
    late = true;
    return;
  }
  holding[1] = holding[2] = false;
  held?.flush();
  end();
}

/** Begins to hold or write; reports whether that is not under way already. */
function begin() {
  if (busy) return false;
  busy = true;
  return true;
}

/** Ends what `begin` began. */
function end() {
  busy = false;
  if (!late) return;
  late = false;
  flush();
}

/** Writes all of `data`, a Buffer, to a descriptor. */
export function writeFully(descriptor, data) {
  while (data.length) data = data.subarray(whenReady(() => writeSync(descriptor, data)));
}

/** Writes to the real stderr, even if the code has replaced process.stderr. */
export function printError(text) {
  try {
    flush();
    writeFully(2, toBytes(text));
  } catch {
    // The code may have closed it.
  }
}

/**
 * Prints to nowhere, often enough that the compiler of the engine has seen all of what
 * printing is, and has compiled it: the first ten thousand lines of a program would take
 * 30 ms, and the next 4. Called once, while no run waits and nothing was printed.
 */
export function practise() {
  const nowhere = openSync("/dev/null", "w");
  targets.fill(nowhere);
  for (let round = 0; round < ROUNDS; round++) {
    listen({ tell() {} }, flush);
    left.fill(BURST);
    for (let i = 0; i < ROUND; i++) {
      console.log("line", i);
      console.log(`item ${i}: done`);
      process.stdout.write(`${i}\n`);
      if (i % 8 === 0) console.error("line", i, `of ${ROUND}`);
      if (i === ROUND - 5) late = true; // as after an interruption
    }
    flush();
  }
  for (const descriptor of STREAMS) {
    targets[descriptor] = descriptor;
    left[descriptor] = BURST;
  }
  closeSync(nowhere);
  collectYoung();
}

/**
 * Makes garbage until the young part of the heap is collected: if it is nearly
 * full, the collection comes while a program prints, and takes several milliseconds of it.
 */
function collectYoung() {
  const { getHeapSpaceStatistics } = getBuiltinModule("node:v8");
  const used = () => getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_used_size;
  for (let before = 0, made = 0; made < MOST_GARBAGE; made += new Array(GARBAGE).fill(0).length) {
    const after = used();
    if (after < before) return;
    before = after;
  }
}

/** Returns what holds output, once everything that has to write it first does. */
function prepare() {
  callBefore(flush, () => {
    flush();
    endInterruptions();
  });
  return new Held(targets);
}
