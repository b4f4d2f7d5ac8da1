import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "invoke" of server "files", wrapped by Airlock. Definition: sha256:4bbf0edf2ecd2790f5429455d17e352841767633d25f10443c801f565ecc0ac3. */

export interface InvokeInput {
}

/** The tool invoke */
export declare function invoke(args?: InvokeInput): Promise<ToolResult<unknown>>;
