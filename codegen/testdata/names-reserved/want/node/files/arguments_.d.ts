import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "arguments" of server "files", wrapped by Airlock. Definition: sha256:667902797be6950bbb22d0351f60d06b748e8cb184862672b08eaa9ea7c07102. */

export interface ArgumentsInput {
}

/** The tool arguments */
export declare function arguments_(args?: ArgumentsInput): Promise<ToolResult<unknown>>;
