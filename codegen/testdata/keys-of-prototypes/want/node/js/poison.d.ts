import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "poison" of server "js", wrapped by Airlock. Definition: sha256:a744b2b4c81daf7e35459e4ae4ac2fdac411a6c17eb9937f75bed6a157cb7596. */

export interface PoisonInput {
  __proto__: PoisonInputProto;
  constructor?: string;
  toString?: string;
  hasOwnProperty?: boolean;
}

export interface PoisonInputProto {
  a?: string;
}

/** Keys that JavaScript objects have already */
export declare function poison(args: PoisonInput): Promise<ToolResult<unknown>>;
