// The thread that writes what output.mjs holds.

import { workerData } from "node:worker_threads";
import { Held } from "./held.mjs";

const TICK = 5; // milliseconds that output is held at most

const held = new Held(workerData);
for (;;) held.pump(TICK);
