import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "SERVER_ID" of server "files", wrapped by Airlock. Definition: sha256:a445c7869a7e444b37bc286c168719f3a2753439fff83cf20bf983761aa32a49. */

export interface ServerIdInput {
}

/** The tool SERVER_ID */
export declare function serverId(args?: ServerIdInput): Promise<ToolResult<unknown>>;
