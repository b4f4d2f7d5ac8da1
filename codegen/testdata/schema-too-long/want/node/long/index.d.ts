export {};

/** 1 tool of server "long". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Configure everything */
export { configure, type ConfigureInput } from "./configure.js";
