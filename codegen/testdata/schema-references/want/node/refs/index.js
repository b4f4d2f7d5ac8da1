// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "refs";

export function anchors(args = {}) {
  return $invoke($server, "anchors", args, "anchors");
}

export function escaped(args = {}) {
  return $invoke($server, "escaped", args, "escaped");
}

export function middle(args = {}) {
  return $invoke($server, "middle", args, "middle");
}

export function outside(args = {}) {
  return $invoke($server, "outside", args, "outside");
}

export function siblings(args = {}) {
  return $invoke($server, "siblings", args, "siblings");
}

export function siblingsNow(args = {}) {
  return $invoke($server, "siblings_now", args, "siblingsNow");
}
export { siblingsNow as siblings_now };
