// The thread that writes what output.mjs holds. It is no ES module, nor is what it
// loads: a thread starts a third faster without a loader for those.

"use strict";

const { workerData } = require("node:worker_threads");
const { Held } = require("./held.cjs");

const TICK = 5; // milliseconds that output is held at most

const held = new Held(workerData);
for (;;) held.pump(TICK);
