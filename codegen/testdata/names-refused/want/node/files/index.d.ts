export {};

/** 2 tools of server "files". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** The only one that is good */
export { good, type GoodInput } from "./good.js";

/** Two */
export { twice, type TwiceInput } from "./twice.js";
