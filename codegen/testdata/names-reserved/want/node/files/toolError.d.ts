import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "ToolError" of server "files", wrapped by Airlock. Definition: sha256:3fe5aeec10c0b422961b02e4378c7efc4554608e9597e25ebc33d74800d842e0. */

export interface ToolErrorInput {
}

/** The tool print */
export declare function toolError(args?: ToolErrorInput): Promise<ToolResult<unknown>>;
