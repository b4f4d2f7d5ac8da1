// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "hostile";

export function comment(args = {}) {
  return $invoke($server, "comment", args, "comment");
}

export function comments(args = {}) {
  return $invoke($server, "comments", args, "comments");
}

export function docstring(args = {}) {
  return $invoke($server, "docstring", args, "docstring");
}

export function escapes(args = {}) {
  return $invoke($server, "escapes", args, "escapes");
}

export function index(args = {}) {
  return $invoke($server, "index", args, "index");
}

export function invisible(args = {}) {
  return $invoke($server, "invisible", args, "invisible");
}

export function values(args = {}) {
  return $invoke($server, "values", args, "values");
}
