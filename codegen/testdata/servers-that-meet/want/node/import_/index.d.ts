export {};

/** 1 tool of server "import". */

/** From a reserved word */
export { get, type GetInput } from "./get.js";
