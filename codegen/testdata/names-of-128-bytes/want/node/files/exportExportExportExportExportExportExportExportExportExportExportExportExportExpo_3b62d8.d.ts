import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEB" of server "files", wrapped by Airlock. Definition: sha256:f9eda569a91705c9156826e84c604a623ec75455d315b00f0137650d0a33b392. */

export interface ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEbInput {
}

/** The same but for its end */
export declare function exportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEb(args?: ExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportExportEbInput): Promise<ToolResult<unknown>>;
