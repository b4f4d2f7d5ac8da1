// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "google-drive";

export function getDocument(args) {
  return $invoke($server, "get.document", args, "getDocument");
}

export function listDocuments(args = {}) {
  return $invoke($server, "list_documents", args, "listDocuments");
}
export { listDocuments as list_documents };
