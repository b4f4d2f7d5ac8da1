export {};

/** 1 tool of server "sys". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** A server named like a module */
export { modules, type ModulesInput } from "./modules.js";
