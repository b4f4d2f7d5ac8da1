import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "_invoke" of server "files", wrapped by Airlock. Definition: sha256:4c62e038b31a3cb88d52fe92017b73b93d79d33f5b5efb7d12701065075cfc3f. */

export interface Invoke_c8dc93Input {
}

/** The tool _invoke */
export declare function invoke_c8dc93(args?: Invoke_c8dc93Input): Promise<ToolResult<unknown>>;
