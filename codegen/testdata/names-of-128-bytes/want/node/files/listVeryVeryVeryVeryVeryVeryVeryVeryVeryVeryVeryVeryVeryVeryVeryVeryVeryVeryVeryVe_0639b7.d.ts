import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "list-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-very-end" of server "files", wrapped by Airlock. Definition: sha256:efa675aa4ee4c7ede7e1868218379898b973248f5a9a49a4774337611fbd4205. */

export interface ListVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryEndInput {
}

/** As long as a name can be */
export declare function listVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryEnd(args?: ListVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryVeryEndInput): Promise<ToolResult<unknown>>;
