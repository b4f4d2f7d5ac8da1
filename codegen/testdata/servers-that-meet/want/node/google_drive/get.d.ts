import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "get" of server "google_drive", wrapped by Airlock. Definition: sha256:dc0d0690a1a6b68dcc7cfa26076297da027042c7c78d2c961e1ba2928cc15b0c. */

export interface GetInput {
}

/** From the underscore */
export declare function get(args?: GetInput): Promise<ToolResult<unknown>>;
