import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "a_b_c" of server "files", wrapped by Airlock. Definition: sha256:b11b3dc91f6e6e39ecaacebd0eb63a62152f6dc4339b47705a665ec96872bd4d. */

export interface ABC_b3f2d2Input {
}

/** The tool whose own name is a_b_c */
export declare function aBC_b3f2d2(args?: ABC_b3f2d2Input): Promise<ToolResult<unknown>>;
