export {};

/** 1 tool of server "files". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Read a file */
export { read, type ReadInput } from "./read.js";
