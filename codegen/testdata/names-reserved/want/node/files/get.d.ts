import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "get" of server "files", wrapped by Airlock. Definition: sha256:4c5c1874f3219c53b67f25d2242ed8b6cf61e919e251b927d3d49742c81e0440. */

export interface Get_2998b3Input {
}

/** The tool get */
export declare function get(args?: Get_2998b3Input): Promise<ToolResult<unknown>>;
