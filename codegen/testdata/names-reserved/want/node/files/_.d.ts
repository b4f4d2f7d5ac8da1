import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "_" of server "files", wrapped by Airlock. Definition: sha256:1cd460910d73084c8127a5dec576c240f07a869547831696db030148347e8a6b. */

export interface _Input {
}

/** The tool _ */
export declare function _(args?: _Input): Promise<ToolResult<unknown>>;
