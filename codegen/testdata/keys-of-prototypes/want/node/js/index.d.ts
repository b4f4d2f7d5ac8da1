export {};

/** 1 tool of server "js". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Keys that JavaScript objects have already */
export { poison, type PoisonInput } from "./poison.js";
