import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "delete" of server "files", wrapped by Airlock. Definition: sha256:be29af4976b4a25c4f0bc1a2cb57f503aa2dcc0cd29eca116d3f9829af9f8777. */

export interface DeleteInput {
}

/** The tool delete */
export declare function delete_(args?: DeleteInput): Promise<ToolResult<unknown>>;
