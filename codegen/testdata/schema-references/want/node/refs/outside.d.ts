import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "outside" of server "refs", wrapped by Airlock. Definition: sha256:49cf8689ea1a1e2a4851042d24f023497704b414813041432e9e59275152ff24. */

export interface OutsideInput {
  a?: unknown;
  b?: unknown;
  c?: unknown;
}

/** What lies outside is never fetched */
export declare function outside(args?: OutsideInput): Promise<ToolResult<unknown>>;
