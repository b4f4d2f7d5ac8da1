import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "create-group" of server "azure", wrapped by Airlock. Definition: sha256:b1e100f4b374afe4619d974732cc0c1ba9811daf115d497aec0d4538758a97d2. */

export interface CreateGroupInput {
  /** The group. */
  "resource-group": string;
  "$and"?: CreateGroupInputAnd[];
  from: number;
  ""?: string;
  __private?: string;
  "ümlaut"?: string;
  "line\nbreak"?: string;
  "\ud800"?: string;
  "1st"?: string;
}

export interface CreateGroupInputAnd {
  "x-loc"?: string;
}

/** Keys that no language takes as a name */
export declare function createGroup(args: CreateGroupInput): Promise<ToolResult<unknown>>;
