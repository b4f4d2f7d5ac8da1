import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "self" of server "tree", wrapped by Airlock. Definition: sha256:8958d492bad8a2a86040ab37cf2443fdd540c7eedd1d5466f5236c0996c21d46. */

export interface SelfInput {
  and?: SelfInput[];
  not?: SelfInput;
  term?: string;
}

/** The whole schema again */
export declare function self(args?: SelfInput): Promise<ToolResult<unknown>>;
