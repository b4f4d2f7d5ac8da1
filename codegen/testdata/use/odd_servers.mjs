// Servers with the names of modules and of our own code stay out of each other's way.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import * as drive from "./servers/google_drive/index.js";
import * as reserved from "./servers/import_/index.js";
import * as empty from "./servers/_3d/index.js";

assert.deepEqual([Object.keys(drive), Object.keys(reserved), Object.keys(empty)], [["ToolError", "get"], ["ToolError", "get"], ["ToolError"]]);
assert.equal(readdirSync("servers").filter((name) => name.startsWith("google_drive_")).length, 1);
