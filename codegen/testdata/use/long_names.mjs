// The function has the whole name, whatever its file is called.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import * as files from "./servers/files/index.js";

assert.ok(Object.keys(files).some((name) => name.length > 110));
assert.ok(readdirSync("servers/files").every((name) => name.length <= 100));
