export {};

/** 1 tool of server "merged". */

/** Parts that must all fit */
export { extend, type ExtendInput } from "./extend.js";
