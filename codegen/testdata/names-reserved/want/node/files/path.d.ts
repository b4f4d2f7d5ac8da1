import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "__path__" of server "files", wrapped by Airlock. Definition: sha256:6ffe99df8cc441a9e6be6e31cb6b70e45c5637ceab081315ef60c5dc109e0b6b. */

export interface PathInput {
}

/** The tool __path__ */
export declare function path(args?: PathInput): Promise<ToolResult<unknown>>;
