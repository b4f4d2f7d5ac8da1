// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "broken";

export function deep(args = {}) {
  return $invoke($server, "deep", args, "deep");
}

export function notASchema(args = {}) {
  return $invoke($server, "not_a_schema", args, "notASchema");
}
export { notASchema as not_a_schema };

export function number(args = {}) {
  return $invoke($server, "number", args, "number");
}

export function odd(args = {}) {
  return $invoke($server, "odd", args, "odd");
}

export function unknownType(args = {}) {
  return $invoke($server, "unknown_type", args, "unknownType");
}
export { unknownType as unknown_type };
