import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "a.b" of server "files", wrapped by Airlock. Definition: sha256:0b4f65fad176ec3e8997d1c1c366f9bd390a712442eab323c4a9a020b68cf819. */

export interface AB_2e7336Input {
}

/** The tool whose own name is a.b */
export declare function aB_2e7336(args?: AB_2e7336Input): Promise<ToolResult<unknown>>;
