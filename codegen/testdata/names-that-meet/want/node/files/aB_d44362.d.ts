import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "a-b" of server "files", wrapped by Airlock. Definition: sha256:8b5dfc08c4037a30e02a5f11fabfbb44f0ebe24a9f0a901bbfba179a2b7156ec. */

export interface AB_d44362Input {
}

/** The tool whose own name is a-b */
export declare function aB_d44362(args?: AB_d44362Input): Promise<ToolResult<unknown>>;
