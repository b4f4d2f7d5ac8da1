export {};

/** 1 tool of server "icons". */

/** Draw */
export { draw, type DrawInput } from "./draw.js";
