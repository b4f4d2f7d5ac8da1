// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "arrays";

export function plot(args = {}) {
  return $invoke($server, "plot", args, "plot");
}
