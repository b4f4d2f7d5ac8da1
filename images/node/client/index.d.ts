import type { attach } from "./attach.js";
import type { catalog, getToolDefinition, searchTools } from "./catalog.js";
import type { callTool, ToolError, ToolResult } from "./mcp_client.js";
import type { listResources, readResource } from "./resources.js";

export * from "./attach.js";
export * from "./catalog.js";
export { callTool, ToolError, ToolResult } from "./mcp_client.js";
export * from "./resources.js";

export declare const client: {
  attach: typeof attach;
  callTool: typeof callTool;
  catalog: typeof catalog;
  getToolDefinition: typeof getToolDefinition;
  listResources: typeof listResources;
  readResource: typeof readResource;
  searchTools: typeof searchTools;
  ToolError: typeof ToolError;
  ToolResult: typeof ToolResult;
};
export default client;
