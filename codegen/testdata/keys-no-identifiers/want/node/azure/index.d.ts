export {};

/** 3 tools of server "azure". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Keys that no language takes as a name */
export { createGroup, type CreateGroupInput } from "./createGroup.js";

/** Only one of the records has such keys */
export { move, type MoveInput } from "./move.js";

/** Keys that differ in a letter, and keys that are types */
export { sort, type SortInput } from "./sort.js";
