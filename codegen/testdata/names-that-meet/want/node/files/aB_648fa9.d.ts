import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "a_b" of server "files", wrapped by Airlock. Definition: sha256:691f01b6664ed5ba91a0d52deab85ec3e233a9bf7620e517074b621712881f14. */

export interface AB_648fa9Input {
}

/** The tool whose own name is a_b */
export declare function aB_648fa9(args?: AB_648fa9Input): Promise<ToolResult<unknown>>;
