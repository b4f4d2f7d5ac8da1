export {};

/** 6 tools of server "refs". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Anchors, identifiers and dynamic references */
export { anchors, type AnchorsInput } from "./anchors.js";

/** A pointer with escapes */
export { escaped, type EscapedInput } from "./escaped.js";

/** A pointer into the middle of the schema */
export { middle, type MiddleInput } from "./middle.js";

/** What lies outside is never fetched */
export { outside, type OutsideInput } from "./outside.js";

/** Before 2019-09 nothing beside $ref counts */
export { siblings, type SiblingsInput } from "./siblings.js";

/** Since 2019-09 it does */
export { siblingsNow, siblingsNow as siblings_now, type SiblingsNowInput } from "./siblingsNow.js";
