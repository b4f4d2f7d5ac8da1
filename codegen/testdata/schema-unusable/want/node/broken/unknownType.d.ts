import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "unknown_type" of server "broken", wrapped by Airlock. Definition: sha256:630bf8e379accec3abeaf3fc3b00ebe7331625babcccfaacd8e80c8f55ee951b. */

export interface UnknownTypeInput {
  when?: unknown;
  what?: string;
}

/** A type that does not exist */
export declare function unknownType(args?: UnknownTypeInput): Promise<ToolResult<unknown>>;
