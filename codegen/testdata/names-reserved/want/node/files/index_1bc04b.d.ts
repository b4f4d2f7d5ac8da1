import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "index" of server "files", wrapped by Airlock. Definition: sha256:6f306bae31aee477ee2003208be8fb0f53d6d5542a75beec6e15f6b7ea94d570. */

export interface IndexInput {
}

/** The tool index */
export declare function index(args?: IndexInput): Promise<ToolResult<unknown>>;
