import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "__init__" of server "files", wrapped by Airlock. Definition: sha256:866ecb031b4707d2498ba61fa48ec2f45bd1ad6efe442a379e411ffd4119e315. */

export interface InitInput {
}

/** The tool __init__ */
export declare function init(args?: InitInput): Promise<ToolResult<unknown>>;
