import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "siblings_now" of server "refs", wrapped by Airlock. Definition: sha256:861289decbaa2a9d1b27f39d7bc4d72ef81bfdf2e00a3c8249a8d3628a3358c1. */

export interface SiblingsNowInput {
  a?: "counts";
  b?: SiblingsNowInputB;
}

export interface SiblingsNowInputB {
  x: number;
  y?: number;
}

/** Since 2019-09 it does */
export declare function siblingsNow(args?: SiblingsNowInput): Promise<ToolResult<unknown>>;
