// Names are case-sensitive: what differs in case only stays apart, by its own name too.

import assert from "node:assert/strict";
import * as files from "./servers/files/index.js";

const own = ["get", "Get", "a_b", "aB", "aBC", "a_b_c", "HTTPServer", "http_server", "getURLList"];
assert.equal(new Set(own.map((name) => files[name])).size, own.length);
