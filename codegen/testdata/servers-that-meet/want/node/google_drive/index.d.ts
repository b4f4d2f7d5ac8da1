export {};

/** 1 tool of server "google_drive". */

/** From the underscore */
export { get, type GetInput } from "./get.js";
