export {};

/** 1 tool of server "merged". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Parts that must all fit */
export { extend, type ExtendInput } from "./extend.js";
