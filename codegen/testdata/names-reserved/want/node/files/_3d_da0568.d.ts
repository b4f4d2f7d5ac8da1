import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "3d" of server "files", wrapped by Airlock. Definition: sha256:bc05b4465866e52b11ca8ba94ced4b8217ccfb6c0332cde7447c5ed93264e96f. */

export interface _3d_da0568Input {
}

/** The tool 3d */
export declare function _3d_da0568(args?: _3d_da0568Input): Promise<ToolResult<unknown>>;
