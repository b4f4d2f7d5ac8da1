export {};

/** 1 tool of server "sys". */

/** A server named like a module */
export { modules, type ModulesInput } from "./modules.js";
