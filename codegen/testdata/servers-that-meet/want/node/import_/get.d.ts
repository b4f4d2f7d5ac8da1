import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "get" of server "import", wrapped by Airlock. Definition: sha256:1550243bfcb3cd6fd246dd90b6d5961393708b8585afdbd2fa845d4a3291ded1. */

export interface GetInput {
}

/** From a reserved word */
export declare function get(args?: GetInput): Promise<ToolResult<unknown>>;
