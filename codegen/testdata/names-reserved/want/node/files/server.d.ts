import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "_Server" of server "files", wrapped by Airlock. Definition: sha256:e48f18ba4537bd4ac8dd7bccbc9c2325284067697c48e1b031f5a4e49cacab7a. */

export interface ServerInput {
}

/** The tool _Server */
export declare function server(args?: ServerInput): Promise<ToolResult<unknown>>;
