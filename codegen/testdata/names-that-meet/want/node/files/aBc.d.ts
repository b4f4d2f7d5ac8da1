import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "aBC" of server "files", wrapped by Airlock. Definition: sha256:dcfc27b578ebda0076193307cb554d76881ea52a5f727490cb551f78d64fc36f. */

export interface ABcInput {
}

/** The tool whose own name is aBC */
export declare function aBc(args?: ABcInput): Promise<ToolResult<unknown>>;
