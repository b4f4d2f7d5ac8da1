import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "depends" of server "unions", wrapped by Airlock. Definition: sha256:49d8c1e9419190b4a56c4be72b5e9de1e988c265c2626f2b797e98a4a1a54a1f. */

/** Beside "object" it needs "version" and "kind". */
export interface DependsInput {
  object?: string;
  version?: string;
  kind?: string;
}

/** A key that demands others */
export declare function depends(args?: DependsInput): Promise<ToolResult<unknown>>;
