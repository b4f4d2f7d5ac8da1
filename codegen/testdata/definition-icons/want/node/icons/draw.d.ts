import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "draw" of server "icons", wrapped by Airlock. Definition: sha256:5eca4a866e18736a0765537b6ff106734eb54d85d2cd2fe2eb400c9a734610f9. */

export interface DrawInput {
  x?: number;
}

/**
 * Draw it.
 *
 * Draw
 *
 * The server says: only adds, repeating changes nothing more.
 */
export declare function draw(args?: DrawInput): Promise<ToolResult<unknown>>;
