export {};

/** 1 tool of server "google-drive". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** From the dash */
export { get, type GetInput } from "./get.js";
