export {};

/** 4 tools of server "unions". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Alternatives that only demand keys */
export { atLeastOne, atLeastOne as at_least_one, type AtLeastOneInput } from "./atLeastOne.js";

/** Alternatives of the arguments themselves */
export { byAction, byAction as by_action, type ByActionInput } from "./byAction.js";

/** Alternatives of all kinds */
export { choose, type ChooseInput } from "./choose.js";

/** A key that demands others */
export { depends, type DependsInput } from "./depends.js";
