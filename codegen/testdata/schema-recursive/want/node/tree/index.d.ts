export {};

/** 5 tools of server "tree". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** References that never arrive, and alternatives in a circle */
export { circle, type CircleInput } from "./circle.js";

/** A recursive definition */
export { grow, type GrowInput } from "./grow.js";

/** Recursion in the functional form */
export { keysByName, type KeysByNameInput } from "./keysByName.js";

/** The whole schema again */
export { self, type SelfInput } from "./self.js";

/** Any JSON */
export { store, type StoreInput } from "./store.js";
