// What code inside an Airlock sandbox uses to reach its tools, and to hand files to
// its caller. The parts also exist by themselves: mcp_client.js, catalog.js, attach.js.

import { attach } from "./attach.js";
import { catalog, getToolDefinition, searchTools } from "./catalog.js";
import { callTool, ToolError, ToolResult } from "./mcp_client.js";
import { listResources, readResource } from "./resources.js";

const client = {
  attach, callTool, catalog, getToolDefinition, listResources, readResource, searchTools, ToolError, ToolResult,
};

export {
  attach, callTool, catalog, client, getToolDefinition, listResources, readResource, searchTools, ToolError, ToolResult,
};
export default client;
