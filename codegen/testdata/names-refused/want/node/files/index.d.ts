export {};

/**
 * 2 tools of server "files".
 * Left out: tool "" has no wrapper: its name is empty
 * Left out: tool "../../etc/passwd" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
 * Left out: tool "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" has no wrapper: its name is 129 bytes long, the protocol allows 128
 * Left out: tool "good\n" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
 * Left out: tool "naïve" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
 * Left out: tool "two words" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
 * Left out: tool "x;import os" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
 */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** The only one that is good */
export { good, type GoodInput } from "./good.js";

/** Two */
export { twice, type TwiceInput } from "./twice.js";
