import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "print" of server "files", wrapped by Airlock. Definition: sha256:bd8c563024c7bd2a887ba3af50d191962ff09b39f1ea05e1b0d95ed5725f07e5. */

export interface PrintInput {
}

/** The tool print */
export declare function print(args?: PrintInput): Promise<ToolResult<unknown>>;
