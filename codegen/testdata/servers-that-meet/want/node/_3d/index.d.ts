export {};

/** 0 tools of server "3d". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";
