import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "anything" of server "results", wrapped by Airlock. Definition: sha256:e042b57d4483497a8dca44cba22d870219fe2cd4c2c3c5a186ed82e077439927. */

export interface AnythingInput {
}

export type AnythingOutput = unknown;

/** An empty schema */
export declare function anything(args?: AnythingInput): Promise<ToolResult<AnythingOutput>>;
