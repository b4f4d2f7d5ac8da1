import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "count" of server "results", wrapped by Airlock. Definition: sha256:61e14ba4f5e592e93165d010c86498cfcb7573c3849cac60d1e560c8e7fb3cb4. */

export interface CountInput {
}

export type CountOutput = number;

/** A number */
export declare function count(args?: CountInput): Promise<ToolResult<CountOutput>>;
