import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "untyped" of server "results", wrapped by Airlock. Definition: sha256:b513287546ca5a0814ef1905add8d35a3641f1e388fb0d58c7d8c49e44031b94. */

export interface UntypedInput {
}

/** No promise */
export declare function untyped(args?: UntypedInput): Promise<ToolResult<unknown>>;
