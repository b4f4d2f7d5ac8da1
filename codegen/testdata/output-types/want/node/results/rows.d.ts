import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "rows" of server "results", wrapped by Airlock. Definition: sha256:0b3d7010f16beaccba458543c8183b86b9a5736d7b188da92d10e388f3cc6ffb. */

export interface RowsInput {
}

export interface RowsOutput {
  rows: RowsOutputRows[];
  next?: string;
}

export interface RowsOutputRows {
  id: number;
  name?: string | null;
}

/** A table */
export declare function rows(args?: RowsInput): Promise<ToolResult<RowsOutput>>;
