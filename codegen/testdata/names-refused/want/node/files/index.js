// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "files";

export function good(args = {}) {
  return $invoke($server, "good", args, "good");
}

export function twice(args = {}) {
  return $invoke($server, "twice", args, "twice");
}
