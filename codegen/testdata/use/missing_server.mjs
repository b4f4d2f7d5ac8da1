// A missing server imports, and says what is wrong as far as a module can.

import assert from "node:assert/strict";
import crm, { problem } from "./servers/crm/index.js";
import * as namespace from "./servers/crm/index.js";
import { read } from "./servers/files/index.js";
import { ToolError } from "./client/mcp_client.js";

assert.match(problem, /^Server "crm" is not available: connect to "https:\/\/crm\.example\.com": refused/);
assert.throws(() => crm.getAccount({}), { message: problem });
assert.equal(namespace.default, crm);
assert.equal(await Promise.resolve(crm), crm, "no promise");
assert.equal(read.name, "read");
assert.equal(namespace.ToolError, ToolError);
