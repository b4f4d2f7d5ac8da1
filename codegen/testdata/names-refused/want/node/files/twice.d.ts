import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "twice" of server "files", wrapped by Airlock. Definition: sha256:a13f978d1917f5a10b6e798ba50bc734045aceffb0103643b804fdf1372e08c2. */

export interface TwiceInput {
}

/** Two */
export declare function twice(args?: TwiceInput): Promise<ToolResult<unknown>>;
