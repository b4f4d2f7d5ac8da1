// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "azure";

export function createGroup(args) {
  return $invoke($server, "create-group", args, "createGroup");
}

export function move(args = {}) {
  return $invoke($server, "move", args, "move");
}

export function sort(args = {}) {
  return $invoke($server, "sort", args, "sort");
}
