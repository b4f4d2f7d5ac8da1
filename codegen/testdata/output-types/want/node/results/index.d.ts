export {};

/** 5 tools of server "results". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** An empty schema */
export { anything, type AnythingInput, type AnythingOutput } from "./anything.js";

/** A number */
export { count, type CountInput, type CountOutput } from "./count.js";

/** No object: the newest revision allows it */
export { list, type ListInput, type ListOutput } from "./list.js";

/** A table */
export { rows, type RowsInput, type RowsOutput } from "./rows.js";

/** No promise */
export { untyped, type UntypedInput } from "./untyped.js";
