export {};

/** 2 tools of server "files". */

/** The only one that is good */
export { good, type GoodInput } from "./good.js";

/** Two */
export { twice, type TwiceInput } from "./twice.js";
