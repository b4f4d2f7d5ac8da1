import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "invisible" of server "hostile", wrapped by Airlock. Definition: sha256:062fa9eee3900de247c4ed7b3ee22dfd8b5fc1d8b2616ab82da184eb389849ed. */

export interface InvisibleInput {
}

/**
 * Null \u0000, bidi \u202eevil\u202c, zero \u200bwidth, separators
 *  and
 * , next line
 * , tag \u{e0041}, variation \ufe0f\u{e0100}, BOM \ufeff, lone �, NEL and  carriage
 * return    tab \u3164 filler
 */
export declare function invisible(args?: InvisibleInput): Promise<ToolResult<unknown>>;
