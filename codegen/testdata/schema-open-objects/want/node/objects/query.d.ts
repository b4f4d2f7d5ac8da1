import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "query" of server "objects", wrapped by Airlock. Definition: sha256:6d1fd1d5ca3b7b55579d895909e34e57e0b7d75b807905209b846d07262ac7b0. */

export interface QueryInput {
  q: string;
  undescribed: unknown;
  [key: string]: unknown;
}

/** Arguments with more keys than are known */
export declare function query(args: QueryInput): Promise<ToolResult<unknown>>;
