export {};

/** 1 tool of server "google_drive". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** From the underscore */
export { get, type GetInput } from "./get.js";
