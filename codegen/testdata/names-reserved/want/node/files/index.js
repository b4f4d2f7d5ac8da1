// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";

const $server = "files";

export function _(args = {}) {
  return $invoke($server, "_", args, "_");
}

export function _3d(args = {}) {
  return $invoke($server, "_3d", args, "_3d");
}

export function _3d_da0568(args = {}) {
  return $invoke($server, "3d", args, "_3d_da0568");
}

export function __3973e0(args = {}) {
  return $invoke($server, "-", args, "__3973e0");
}

export function arguments_(args = {}) {
  return $invoke($server, "arguments", args, "arguments_");
}

export function attach(args = {}) {
  return $invoke($server, "attach", args, "attach");
}

export function class_(args = {}) {
  return $invoke($server, "class_", args, "class_");
}

export function class__088911(args = {}) {
  return $invoke($server, "class", args, "class__088911");
}

export function delete_(args = {}) {
  return $invoke($server, "delete", args, "delete_");
}

export function get(args = {}) {
  return $invoke($server, "get", args, "get");
}

export function getInput(args = {}) {
  return $invoke($server, "GetInput", args, "getInput");
}
export { getInput as GetInput };

export function index(args = {}) {
  return $invoke($server, "index", args, "index");
}

export function init(args = {}) {
  return $invoke($server, "__init__", args, "init");
}
export { init as __init__ };

export function invoke(args = {}) {
  return $invoke($server, "invoke", args, "invoke");
}

export function invoke_c8dc93(args = {}) {
  return $invoke($server, "_invoke", args, "invoke_c8dc93");
}
export { invoke_c8dc93 as _invoke };

export function path(args = {}) {
  return $invoke($server, "__path__", args, "path");
}
export { path as __path__ };

export function print(args = {}) {
  return $invoke($server, "print", args, "print");
}

export function proto(args = {}) {
  return $invoke($server, "__proto__", args, "proto");
}
export { proto as __proto__ };

export function server(args = {}) {
  return $invoke($server, "_Server", args, "server");
}
export { server as _Server };

export function serverId(args = {}) {
  return $invoke($server, "SERVER_ID", args, "serverId");
}
export { serverId as SERVER_ID };

export function then_(args = {}) {
  return $invoke($server, "then", args, "then_");
}

export function toolError(args = {}) {
  return $invoke($server, "ToolError", args, "toolError");
}
export { toolError as ToolError };

export function typeChecking(args = {}) {
  return $invoke($server, "TYPE_CHECKING", args, "typeChecking");
}
export { typeChecking as TYPE_CHECKING };

export function undefined_(args = {}) {
  return $invoke($server, "undefined", args, "undefined_");
}
