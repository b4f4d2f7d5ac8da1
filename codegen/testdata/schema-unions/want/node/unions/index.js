// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "unions";

export function atLeastOne(args) {
  return $invoke($server, "at_least_one", args, "atLeastOne");
}
export { atLeastOne as at_least_one };

export function byAction(args) {
  return $invoke($server, "by_action", args, "byAction");
}
export { byAction as by_action };

export function choose(args) {
  return $invoke($server, "choose", args, "choose");
}

export function depends(args = {}) {
  return $invoke($server, "depends", args, "depends");
}
