import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "values" of server "hostile", wrapped by Airlock. Definition: sha256:45d0327ffa0d7562d9c299ba276589a70740625e97b327d533f7f40fa056c7a8. */

export interface ValuesInput {
  a?: "\"]; import os; x = [\"" | "*/" | "\u2028" | "\ud800" | "\\" | "\n";
  "b\"]: str; import os"?: string;
  /** Default: {"\"\"\"": "*\/"}. Format: *\/""". Pattern: """*\/. */
  c?: string;
}

/** Values of schemas */
export declare function values(args?: ValuesInput): Promise<ToolResult<unknown>>;
