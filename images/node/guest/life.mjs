// The life of the guest: get ready, wait for the host, fetch one program, run it.

import { rehearse, run } from "./execute.mjs";
import { Link } from "./link.mjs";
import { holdOutput, practise, writeAtOnce } from "./output.mjs";
import { reseedMathRandom, seedNewContexts } from "./random.mjs";
import { emptySession, prepareSession, SessionFiles } from "./session.mjs";
import { keepHome } from "/workspace/client/transport.js";
import client from "/workspace/client/index.js";

const { closeSync, constants, openSync, readSync, writeSync } = process.getBuiltinModule("node:fs");

// What code commonly imports, loaded ahead of time when there is time. An import of a
// module of Node's reads all that it offers, and so loads much that is not used: the
// modules of the guest and the client use process.getBuiltinModule.
const USUAL = ["child_process", "console", "fs", "module", "net", "url", "util", "worker_threads"];

const chunk = Buffer.alloc(4096);

/**
 * Returns what the host has already written, without waiting, or undefined if that
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

/** Blocks until the host has written a line, which may have begun, and returns it. */
function wait(line) {
  while (!line.endsWith("\n")) {
    const read = readSync(0, chunk);
    if (read === 0) process.reallyExit(0); // the host is gone: the sandbox is not needed
    line += chunk.latin1Slice(0, read);
  }
  return line.trim();
}

/** Waits for the start line, leaves an empty stdin, and returns the line. In a sandbox with a network, the host first
 * sends what the sandbox must not reach, and judges by what happened. */
async function awaitStart(begun) {
  let line = wait(begun);
  if (line.startsWith("probe ")) {
    const { probe } = await import("/opt/airlock/guest/probe.mjs");
    writeSync(1, `${proof()}probe\n${await probe(line.split(" ").slice(1))}ready\n`);
    line = wait("");
  }
  closeSync(0);
  openSync("/dev/null", "r"); // takes descriptor 0, the lowest that is free
  return line;
}

/** Lives from the start to the run of the program, which goes on when the promise resolves. */
export async function live() {
  writeAtOnce();
  keepHome();
  prepareSession();
  // `client.attach(…)` works without an import.
  Object.defineProperty(globalThis, "client", { configurable: true, writable: true, value: client });
  const begun = alreadyWritten();
  if (begun === "") {
    await Promise.all(USUAL.map((name) => import(`node:${name}`)));
    practise();
    // What is compiled now is saved with the sandbox.
    await rehearse(emptySession());
  }
  writeSync(1, `${proof()}ready\n`);
  const word = await awaitStart(begun ?? "");
  reseedMathRandom();
  seedNewContexts();
  if (word !== "now") await rehearse(emptySession());
  const link = await Link.open();
  const { code, session } = link.start();
  holdOutput(link);
  run(code, link, session && new SessionFiles(link, session));
}
