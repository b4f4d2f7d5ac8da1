import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "by_action" of server "unions", wrapped by Airlock. Definition: sha256:42dda254575d232e47cfeb0d9485533fe89dd2321715608b6af9df06fd32cef2. */

export type ByActionInput = ByActionInputItem | ByActionInputItem_2;

export interface ByActionInputItem {
  action: "create";
  size: number;
  name: string;
}

export interface ByActionInputItem_2 {
  action: "delete";
  name: string;
}

/** Alternatives of the arguments themselves */
export declare function byAction(args: ByActionInput): Promise<ToolResult<unknown>>;
