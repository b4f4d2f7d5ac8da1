import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "get" of server "google-drive", wrapped by Airlock. Definition: sha256:3bae131b90ac93e7f421970cb3cf0a3e4899cae985df04c77610aeab0192eddd. */

export interface GetInput {
}

/** From the dash */
export declare function get(args?: GetInput): Promise<ToolResult<unknown>>;
