// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "tree";

export function circle(args = {}) {
  return $invoke($server, "circle", args, "circle");
}

export function grow(args) {
  return $invoke($server, "grow", args, "grow");
}

export function keysByName(args = {}) {
  return $invoke($server, "keys.by-name", args, "keysByName");
}

export function self(args = {}) {
  return $invoke($server, "self", args, "self");
}

export function store(args = {}) {
  return $invoke($server, "store", args, "store");
}
