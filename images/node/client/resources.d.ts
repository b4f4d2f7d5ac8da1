import type { ToolResult } from "./mcp_client.js";

/** A resource of a server, or the template of many resources. */
export interface ListedResource {
  serverId: string;
  name: string;
  uri?: string;
  uriTemplate?: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

/** One part of a resource. */
export interface ResourcePart {
  uri: string;
  mimeType?: string;
  text?: string;
  data?: Uint8Array;
}

/** Returns the resources of all servers, or of one. */
export declare function listResources(server?: string | { serverId?: string }): Promise<ListedResource[]>;

/** Reads a resource: a string, the value of a JSON resource, bytes, or several parts. */
export declare function readResource<T = string>(resource: { serverId: string; uri: string }): Promise<ToolResult<T>>;
export declare function readResource<T = string>(serverId: string, uri: string): Promise<ToolResult<T>>;
