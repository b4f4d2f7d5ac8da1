export {};

/** 1 tool of server "arrays". */

/** Arrays, and tuples as both drafts write them */
export { plot, type PlotInput, type PlotOutput } from "./plot.js";
