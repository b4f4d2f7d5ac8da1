// The program that an Airlock sandbox starts to run JavaScript code.
//
//     /usr/bin/node --openssl-config=/opt/airlock/guest/openssl.cnf /opt/airlock/guest/main.mjs
//
// It gets ready, waits for the host, fetches one program, runs it, and says what
// became of it:
//
// - link.mjs: the guest's own connection to the host;
// - execute.mjs: runs the code as an ES module and notices how it ends;
// - source.mjs: reads a program as what it means where Node would refuse it;
// - outcome.mjs: turns how the code ended into what the host is told;
// - failure.mjs: describes an error; hints.mjs says how to repair the code, and
//   notes.mjs why there is probably no result;
// - session.mjs: the files that the runs of one session share;
// - output.mjs: streams that lose nothing, with held.cjs and pump.cjs, and console.mjs;
// - random.mjs and openssl.cnf: random numbers that no two sandboxes share.
//
// The code shares this process. It may break every global and module; it cannot
// make the host believe anything but its own result. What the guest needs after
// the code has run, it holds by references taken before.

import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { rehearse, run } from "./execute.mjs";
import { Link } from "./link.mjs";
import { practise, writeAtOnce } from "./output.mjs";
import { reseedMathRandom } from "./random.mjs";
import { prepareSession, SessionFiles } from "./session.mjs";
import { keepHome } from "/workspace/client/transport.js";
import client from "/workspace/client/index.js";

const chunk = Buffer.alloc(4096);

/**
 * Returns what the host has written by now, without waiting, or undefined where that
 * cannot be known. A host that starts a sandbox for a run that waits writes at
 * once; one that fills its pool writes when a run comes.
 */
function alreadyWritten() {
  let descriptor;
  try {
    descriptor = openSync("/proc/self/fd/0", constants.O_RDONLY | constants.O_NONBLOCK);
    return chunk.latin1Slice(0, readSync(descriptor, chunk));
  } catch (cause) {
    return cause.code === "EAGAIN" ? "" : undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Returns which kernel answers and which network devices there are: the host judges by it. */
function proof() {
  let text = "";
  for (const path of ["/proc/version", "/proc/net/dev"]) {
    const descriptor = openSync(path, constants.O_RDONLY);
    text += chunk.latin1Slice(0, readSync(descriptor, chunk));
    closeSync(descriptor);
  }
  return text;
}

/** Blocks until the host has written a line, which may have begun, leaves an empty stdin, and returns the line. */
function wait(line) {
  while (!line.endsWith("\n")) {
    const read = readSync(0, chunk);
    if (read === 0) process.reallyExit(0); // the host is gone: the sandbox is not needed
    line += chunk.latin1Slice(0, read);
  }
  closeSync(0);
  openSync("/dev/null", "r"); // takes descriptor 0, the lowest that is free
  return line.trim();
}

writeAtOnce();
keepHome();
prepareSession();
// `client.attach(…)` works without an import.
Object.defineProperty(globalThis, "client", { configurable: true, writable: true, value: client });
const begun = alreadyWritten();
if (begun === "") practise();
writeSync(1, `${proof()}ready\n`);
const word = wait(begun ?? "");
reseedMathRandom();
if (word !== "now") await rehearse();
const link = await Link.open();
const { code, session } = link.start();
run(code, link, session && new SessionFiles(link, session));
