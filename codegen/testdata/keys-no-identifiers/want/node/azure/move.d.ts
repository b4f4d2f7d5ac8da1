import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "move" of server "azure", wrapped by Airlock. Definition: sha256:18d958a37119ea02792e67b06f5f509a5fa0d78c53a7c9e09c0c8fb86871d1d7. */

export interface MoveInput {
  to?: MoveInputTo;
  __proto__?: string;
}

export interface MoveInputTo {
  "a b"?: string;
}

/** Only one of the records has such keys */
export declare function move(args?: MoveInput): Promise<ToolResult<unknown>>;
