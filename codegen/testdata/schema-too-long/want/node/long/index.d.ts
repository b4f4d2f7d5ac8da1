export {};

/** 1 tool of server "long". */

/** Configure everything */
export { configure, type ConfigureInput } from "./configure.js";
