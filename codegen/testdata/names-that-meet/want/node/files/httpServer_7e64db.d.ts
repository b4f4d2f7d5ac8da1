import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "HTTPServer" of server "files", wrapped by Airlock. Definition: sha256:9242fe972760a16c984a419b8165b18b7cc28597b041dddb1ec4045331ae08b3. */

export interface HttpServer_7e64dbInput {
}

/** The tool whose own name is HTTPServer */
export declare function httpServer_7e64db(args?: HttpServer_7e64dbInput): Promise<ToolResult<unknown>>;
