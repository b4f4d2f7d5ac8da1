import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "undefined" of server "files", wrapped by Airlock. Definition: sha256:4ba707132a38151c817ba94daf8ceabe8a2d1b67d461958c6ead8a34206ccb48. */

export interface UndefinedInput {
}

/** The tool undefined */
export declare function undefined_(args?: UndefinedInput): Promise<ToolResult<unknown>>;
