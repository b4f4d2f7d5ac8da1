import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "odd" of server "broken", wrapped by Airlock. Definition: sha256:e86c9026e06fde238fa079fdb38aaab69ce12b2cc1354f4010cd6648ff281578. */

export interface OddInput {
}

/** Keywords of the wrong kind */
export declare function odd(args?: OddInput): Promise<ToolResult<unknown>>;
