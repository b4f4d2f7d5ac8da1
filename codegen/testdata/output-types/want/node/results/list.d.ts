import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "list" of server "results", wrapped by Airlock. Definition: sha256:427e9f3208595a84157f3c98cca7d97093999c2d812456ae2bdcfdbfa8300a2b. */

export interface ListInput {
}

export type ListOutput = string[];

/** No object: the newest revision allows it */
export declare function list(args?: ListInput): Promise<ToolResult<ListOutput>>;
