export {};

/** 1 tool of server "arrays". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Arrays, and tuples as both drafts write them */
export { plot, type PlotInput, type PlotOutput } from "./plot.js";
