// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "objects";

export function filter(args = {}) {
  return $invoke($server, "filter", args, "filter");
}

export function label(args = {}) {
  return $invoke($server, "label", args, "label");
}

export function query(args) {
  return $invoke($server, "query", args, "query");
}
