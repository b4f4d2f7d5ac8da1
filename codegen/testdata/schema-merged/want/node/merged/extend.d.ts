import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "extend" of server "merged", wrapped by Airlock. Definition: sha256:5e532d7b6bd68e2b7471ac9d9c1698dcdd0e1c5ce81af491c99cf490cc4a34a5. */

export interface ExtendInput {
  it?: ExtendInputIt;
  narrow?: "a" | "b";
  number?: number;
  never?: never;
  both?: number;
}

export interface ExtendInputIt {
  id: string;
  size?: number;
  extra: boolean;
}

/** Parts that must all fit */
export declare function extend(args?: ExtendInput): Promise<ToolResult<unknown>>;
