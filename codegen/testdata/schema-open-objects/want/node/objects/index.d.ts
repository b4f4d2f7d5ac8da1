export {};

/** 3 tools of server "objects". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Arguments that may be anything */
export { filter, type FilterInput } from "./filter.js";

/** Objects with and without known keys */
export { label, type LabelInput, type LabelOutput } from "./label.js";

/** Arguments with more keys than are known */
export { query, type QueryInput } from "./query.js";
