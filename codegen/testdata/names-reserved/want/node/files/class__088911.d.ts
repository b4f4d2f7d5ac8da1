import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "class" of server "files", wrapped by Airlock. Definition: sha256:c9f96270747adf2a6811c72ad835eb515b591a91a8f0e45d7654950da1c3b138. */

export interface Class_088911Input {
}

/** The tool class */
export declare function class__088911(args?: Class_088911Input): Promise<ToolResult<unknown>>;
