import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "TYPE_CHECKING" of server "files", wrapped by Airlock. Definition: sha256:c2ccc98d177cff05b9e035d039f88045a5da817190b88d1ee315fdffb8b006a7. */

export interface TypeCheckingInput {
}

/** The tool TYPE_CHECKING */
export declare function typeChecking(args?: TypeCheckingInput): Promise<ToolResult<unknown>>;
