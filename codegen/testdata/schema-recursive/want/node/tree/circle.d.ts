import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "circle" of server "tree", wrapped by Airlock. Definition: sha256:44c657abf87799b2e6b06500bbc996a39ea25e5cb2b7008ea91b10f33f867c2d. */

export interface CircleInput {
  a?: unknown;
  b?: CircleInputB;
}

export type CircleInputB = number | string;

/** References that never arrive, and alternatives in a circle */
export declare function circle(args?: CircleInput): Promise<ToolResult<unknown>>;
