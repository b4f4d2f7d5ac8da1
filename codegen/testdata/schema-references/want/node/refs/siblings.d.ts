import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "siblings" of server "refs", wrapped by Airlock. Definition: sha256:64a0934208ccc02de92f441ad9fdfc042a50ebe74117b6ec9ccf2454d58d08e1. */

export interface SiblingsInput {
  a?: string;
}

/** Before 2019-09 nothing beside $ref counts */
export declare function siblings(args?: SiblingsInput): Promise<ToolResult<unknown>>;
