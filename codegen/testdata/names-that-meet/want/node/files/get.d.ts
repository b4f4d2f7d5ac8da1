import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "get" of server "files", wrapped by Airlock. Definition: sha256:7565c68def7a1e8cc7edec00ee60e69fdefcd28f93b295373a0dd465f3913fb3. */

export interface GetInput {
}

/** The tool whose own name is get */
export declare function get(args?: GetInput): Promise<ToolResult<unknown>>;
