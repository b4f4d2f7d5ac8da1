export {};

/** 1 tool of server "attach". */

/** A server named like our own code */
export { attach, type AttachInput } from "./attach.js";
