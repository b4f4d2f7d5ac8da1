export {};

/** 1 tool of server "attach". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** A server named like our own code */
export { attach, type AttachInput } from "./attach.js";
