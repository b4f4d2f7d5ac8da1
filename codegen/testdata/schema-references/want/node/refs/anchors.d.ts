import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "anchors" of server "refs", wrapped by Airlock. Definition: sha256:c748dcd46069e65dab6471308fdb7b0fa857fff1690bbf7be08ea46cec7ce432. */

export interface AnchorsInput {
  a?: AnchorsInputHere;
  b?: AnchorsInputItem;
  c?: AnchorsInputItem;
  d?: AnchorsInputHere;
}

export interface AnchorsInputHere {
  n?: number;
}

export interface AnchorsInputItem {
  inner?: "z";
}

/** Anchors, identifiers and dynamic references */
export declare function anchors(args?: AnchorsInput): Promise<ToolResult<unknown>>;
