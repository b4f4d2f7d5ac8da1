import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "middle" of server "refs", wrapped by Airlock. Definition: sha256:6d0e50b3a89c72492db927b30ce092cfd1a5c7b84b4b0bc6e7694b7f93a27ba6. */

export interface MiddleInput {
  source?: MiddleInputSource;
  target?: MiddleInputSource;
  lines?: number[];
}

export interface MiddleInputSource {
  path: string;
  line?: number;
}

/** A pointer into the middle of the schema */
export declare function middle(args?: MiddleInput): Promise<ToolResult<unknown>>;
