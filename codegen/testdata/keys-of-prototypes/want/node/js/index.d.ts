export {};

/** 1 tool of server "js". */

/** Keys that JavaScript objects have already */
export { poison, type PoisonInput } from "./poison.js";
