// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "results";

export function anything(args = {}) {
  return $invoke($server, "anything", args, "anything");
}

export function count(args = {}) {
  return $invoke($server, "count", args, "count");
}

export function list(args = {}) {
  return $invoke($server, "list", args, "list");
}

export function rows(args = {}) {
  return $invoke($server, "rows", args, "rows");
}

export function untyped(args = {}) {
  return $invoke($server, "untyped", args, "untyped");
}
