export {};

/** 1 tool of server "google-drive". */

/** From the dash */
export { get, type GetInput } from "./get.js";
