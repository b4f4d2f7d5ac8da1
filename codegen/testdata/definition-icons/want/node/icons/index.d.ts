export {};

/** 1 tool of server "icons". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Draw */
export { draw, type DrawInput } from "./draw.js";
