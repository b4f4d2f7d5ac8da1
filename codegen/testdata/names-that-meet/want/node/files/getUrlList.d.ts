import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "getURLList" of server "files", wrapped by Airlock. Definition: sha256:5d744bad2789018b9114d63dfcbebf24dc8ab76415d7a0c368e6752297ad21b6. */

export interface GetUrlListInput {
}

/** The tool whose own name is getURLList */
export declare function getUrlList(args?: GetUrlListInput): Promise<ToolResult<unknown>>;
