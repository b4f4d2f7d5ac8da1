import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "deep" of server "broken", wrapped by Airlock. Definition: sha256:b8593fa0381b66d735ec2cc85589635eaf5e53de1a2d2a6f51025e6a63235fe9. */

export type DeepInput = { [key: string]: unknown };

/** Nested too deep */
export declare function deep(args?: DeepInput): Promise<ToolResult<unknown>>;
