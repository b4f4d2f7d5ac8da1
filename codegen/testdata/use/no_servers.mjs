// The directory is there, and says that there is nothing.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

assert.match(readFileSync("servers/README.md", "utf8"), /No server is configured/);
