import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "_3d" of server "files", wrapped by Airlock. Definition: sha256:18f1a9a91ba37de8f161adacec7d62fa5f388f7ec9cad2b874424e2a9fb2b553. */

export interface _3dInput {
}

/** The tool _3d */
export declare function _3d(args?: _3dInput): Promise<ToolResult<unknown>>;
