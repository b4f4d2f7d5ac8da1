import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "Get" of server "files", wrapped by Airlock. Definition: sha256:cd8a4818babfb0dc834a63094048498b9988fa11264f55daa8c0e4657fa41ac7. */

export interface Get_5fb9c3Input {
}

/** The tool whose own name is Get */
export declare function get_5fb9c3(args?: Get_5fb9c3Input): Promise<ToolResult<unknown>>;
