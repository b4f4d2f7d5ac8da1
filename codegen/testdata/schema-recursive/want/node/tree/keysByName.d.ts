import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "keys.by-name" of server "tree", wrapped by Airlock. Definition: sha256:ce93a71d647f64bd2438d60f2d614cb2f9568f8954897cf51986db07014330cc. */

export interface KeysByNameInput {
  "sub-key"?: KeysByNameInput;
  "list-of"?: KeysByNameInput[];
}

/** Recursion in the functional form */
export declare function keysByName(args?: KeysByNameInput): Promise<ToolResult<unknown>>;
