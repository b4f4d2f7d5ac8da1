import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "not_a_schema" of server "broken", wrapped by Airlock. Definition: sha256:14e1942b43760d1699e34baf198a41897371f8236da3a6ec0e69388a4f44b4a4. */

export interface NotASchemaInput {
  a?: unknown;
  b?: unknown;
  c?: unknown;
  d?: string;
}

/** Its properties are no schemas */
export declare function notASchema(args?: NotASchemaInput): Promise<ToolResult<unknown>>;
