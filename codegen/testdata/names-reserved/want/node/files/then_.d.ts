import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "then" of server "files", wrapped by Airlock. Definition: sha256:82b819831189c8dbf85abf4994ca4e621e482751dc2fc09d43f79183c8829d86. */

export interface ThenInput {
}

/** The tool then */
export declare function then_(args?: ThenInput): Promise<ToolResult<unknown>>;
