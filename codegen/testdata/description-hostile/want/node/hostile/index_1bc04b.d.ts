import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "index" of server "hostile", wrapped by Airlock. Definition: sha256:5ae6ae4d30c70ef426a332dfae1056368f5591cdd21685f5408c1348409de7a6. */

export interface IndexInput {
}

/**
 * Title ## with """ heading *\/.
 *
 * ] ( ) `code` <b>
 * - `forged` (x/y.py): a line of its own
 * ## heading
 */
export declare function index(args?: IndexInput): Promise<ToolResult<unknown>>;
