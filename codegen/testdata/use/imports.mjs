// Every way to import a wrapper gives the same function.

import assert from "node:assert/strict";
import { ToolError } from "./client/mcp_client.js";
import * as drive from "./servers/google_drive/index.js";
import { getDocument, list_documents } from "./servers/google_drive/index.js";
import { getDocument as fromFile } from "./servers/google_drive/getDocument.js";

assert.equal(drive.getDocument, getDocument);
assert.equal(fromFile, getDocument);
assert.equal(getDocument.name, "getDocument");
assert.equal(drive.listDocuments, list_documents, "the tool's own name is an identifier too");
assert.deepEqual(Object.keys(drive), ["ToolError", "getDocument", "listDocuments", "list_documents"]);
assert.equal(drive.ToolError, ToolError);
assert.deepEqual((await list_documents()).data, {}, "arguments that may be left out");
