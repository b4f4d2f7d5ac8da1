// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "attach";

export function attach(args = {}) {
  return $invoke($server, "attach", args, "attach");
}
