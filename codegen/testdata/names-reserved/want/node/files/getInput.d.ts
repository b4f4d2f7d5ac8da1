import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "GetInput" of server "files", wrapped by Airlock. Definition: sha256:4e7f90fe3e005edbaf35977db2959d3cf6bad5e09c387cfa015de21e06b22d33. */

export interface GetInputInput {
}

/** The tool GetInput */
export declare function getInput(args?: GetInputInput): Promise<ToolResult<unknown>>;
