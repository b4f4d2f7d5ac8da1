import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "-" of server "files", wrapped by Airlock. Definition: sha256:56dfe6b56ca115d58eb54a0d6fb0d6336685fe54a8df6fbb8c28ccf1af8c2fa8. */

export interface __3973e0Input {
}

/** The tool - */
export declare function __3973e0(args?: __3973e0Input): Promise<ToolResult<unknown>>;
