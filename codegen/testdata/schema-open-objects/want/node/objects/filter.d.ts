import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "filter" of server "objects", wrapped by Airlock. Definition: sha256:8d5a222901c5404b84a41b24b4b2e3fea8246c3d0954254f7880d1d13b6eabf8. */

export type FilterInput = { [key: string]: unknown };

/** Arguments that may be anything */
export declare function filter(args?: FilterInput): Promise<ToolResult<unknown>>;
