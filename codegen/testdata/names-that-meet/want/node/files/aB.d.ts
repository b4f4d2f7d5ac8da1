import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "aB" of server "files", wrapped by Airlock. Definition: sha256:c8c07e64e51933553c58017831994181fa0ba348a786526fd1b819447feec1a4. */

export interface ABInput {
}

/** The tool whose own name is aB */
export declare function aB(args?: ABInput): Promise<ToolResult<unknown>>;
