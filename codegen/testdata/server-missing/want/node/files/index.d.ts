export {};

/** 1 tool of server "files". */

/** Read a file */
export { read, type ReadInput } from "./read.js";
