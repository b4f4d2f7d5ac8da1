// Tools with the names of reserved words and of our own code can all be called.

import assert from "node:assert/strict";

const files = await import("./servers/files/index.js"); // would call an export named "then"
const functions = new Set(Object.values(files));
assert.equal(functions.size, 24);
for (const wrapper of functions) await wrapper({});
assert.equal(files.then, undefined);
assert.equal(files.delete_.name, "delete_");
assert.equal(files.ToolError, files.toolError, "a tool of that name is not hidden");
