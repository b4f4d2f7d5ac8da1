import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "__proto__" of server "files", wrapped by Airlock. Definition: sha256:d464d012364aa2cc6d4a286a5e38d1d21205315b1eb6bbbcb3db947cd828df5e. */

export interface ProtoInput {
}

/** The tool __proto__ */
export declare function proto(args?: ProtoInput): Promise<ToolResult<unknown>>;
