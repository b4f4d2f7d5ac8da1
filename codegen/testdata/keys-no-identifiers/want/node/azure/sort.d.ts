import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "sort" of server "azure", wrapped by Airlock. Definition: sha256:1e318084af4cab9c1d4d16c4b96a6b9b2b8de0ae1fdb73a649784458ab3e154a. */

export interface SortInput {
  orderBy?: string;
  order_by?: string;
  str?: string;
  list?: string[];
  SortInput?: string;
}

/** Keys that differ in a letter, and keys that are types */
export declare function sort(args?: SortInput): Promise<ToolResult<unknown>>;
