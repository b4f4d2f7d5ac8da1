import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "http_server" of server "files", wrapped by Airlock. Definition: sha256:ff86430db7642d7eeec7ed18b7958b19e4e300664b44cd8287d04e536537bf43. */

export interface HttpServer_0f29f3Input {
}

/** The tool whose own name is http_server */
export declare function httpServer_0f29f3(args?: HttpServer_0f29f3Input): Promise<ToolResult<unknown>>;
