// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "files";

export function aB(args = {}) {
  return $invoke($server, "aB", args, "aB");
}

export function aBC_b3f2d2(args = {}) {
  return $invoke($server, "a_b_c", args, "aBC_b3f2d2");
}
export { aBC_b3f2d2 as a_b_c };

export function aB_2e7336(args = {}) {
  return $invoke($server, "a.b", args, "aB_2e7336");
}

export function aB_648fa9(args = {}) {
  return $invoke($server, "a_b", args, "aB_648fa9");
}
export { aB_648fa9 as a_b };

export function aB_d44362(args = {}) {
  return $invoke($server, "a-b", args, "aB_d44362");
}

export function aBc(args = {}) {
  return $invoke($server, "aBC", args, "aBc");
}
export { aBc as aBC };

export function get(args = {}) {
  return $invoke($server, "get", args, "get");
}

export function getUrlList(args = {}) {
  return $invoke($server, "getURLList", args, "getUrlList");
}
export { getUrlList as getURLList };

export function get_5fb9c3(args = {}) {
  return $invoke($server, "Get", args, "get_5fb9c3");
}
export { get_5fb9c3 as Get };

export function httpServer_0f29f3(args = {}) {
  return $invoke($server, "http_server", args, "httpServer_0f29f3");
}
export { httpServer_0f29f3 as http_server };

export function httpServer_7e64db(args = {}) {
  return $invoke($server, "HTTPServer", args, "httpServer_7e64db");
}
export { httpServer_7e64db as HTTPServer };
