import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "good" of server "files", wrapped by Airlock. Definition: sha256:2cbd21245576687a338ac7d8ccbd7819e4cd08fe5082fc9341619816a7022776. */

export interface GoodInput {
}

/** The only one that is good */
export declare function good(args?: GoodInput): Promise<ToolResult<unknown>>;
