import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "class_" of server "files", wrapped by Airlock. Definition: sha256:43425be5b90bda047d45d42987db08425ac1f230fd08817b1cf8a785d3052ed9. */

export interface ClassInput {
}

/** The tool class_ */
export declare function class_(args?: ClassInput): Promise<ToolResult<unknown>>;
