import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "store" of server "tree", wrapped by Airlock. Definition: sha256:66069df09c57f1bb1829ad495629f37a43ff194e089d5bb391ad972955093270. */

export interface StoreInput {
  json?: StoreInputJson;
}

export type StoreInputJson = string | number | boolean | StoreInputJson[] | { [key: string]: StoreInputJson } | null;

/** Any JSON */
export declare function store(args?: StoreInput): Promise<ToolResult<unknown>>;
