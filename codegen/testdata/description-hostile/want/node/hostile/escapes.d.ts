import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "escapes" of server "hostile", wrapped by Airlock. Definition: sha256:1526bc1878bd688137856ae14a7bda989f12778b75393af87bcb36c013e8f359. */

export interface EscapesInput {
}

/** Looks like escapes: \u0022 \x22 \N{QUOTATION MARK} ${x} {x} %s \ */
export declare function escapes(args?: EscapesInput): Promise<ToolResult<unknown>>;
