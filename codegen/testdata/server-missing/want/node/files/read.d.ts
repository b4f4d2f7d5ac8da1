import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "read" of server "files", wrapped by Airlock. Definition: sha256:93e9f8d2a7cd06af4a016baa182150b64e14a4236a257ffd7422ccc101fda571. */

export interface ReadInput {
  path: string;
}

/** Read a file */
export declare function read(args: ReadInput): Promise<ToolResult<unknown>>;
