import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "modules" of server "sys", wrapped by Airlock. Definition: sha256:8789b243cfce2f1ec94b4ab204d5ba8b22214a028210967930f86441655dc8e1. */

export interface ModulesInput {
}

/** A server named like a module */
export declare function modules(args?: ModulesInput): Promise<ToolResult<unknown>>;
