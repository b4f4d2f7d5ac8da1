export {};

/** 1 tool of server "import". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** From a reserved word */
export { get, type GetInput } from "./get.js";
