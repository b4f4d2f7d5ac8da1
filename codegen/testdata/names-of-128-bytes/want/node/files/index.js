// Calls go to the server's tools. The types and descriptions are in index.d.ts.
import { invoke as $invoke } from "../../client/mcp_client.js";
export { ToolError } from "../../client/mcp_client.js";

const $server = "files";

export function exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEa(args = {}) {
  return $invoke($server, "ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEA", args, "exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEa");
}
export { exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEa as ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEA };

export function exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEb(args = {}) {
  return $invoke($server, "ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEB", args, "exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEb");
}
export { exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEb as ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEB };

export function listVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryEnd(args = {}) {
  return $invoke($server, "list-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-end", args, "listVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryEnd");
}
