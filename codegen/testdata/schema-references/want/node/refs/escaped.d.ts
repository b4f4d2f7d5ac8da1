import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "escaped" of server "refs", wrapped by Airlock. Definition: sha256:2785e5b4052375805f7319b7cafbe042e607001ec00d2671f27c5c2722b55f52. */

export interface EscapedInput {
  a?: EscapedInputABCD;
}

export type EscapedInputABCD = "x" | "y";

/** A pointer with escapes */
export declare function escaped(args?: EscapedInput): Promise<ToolResult<unknown>>;
