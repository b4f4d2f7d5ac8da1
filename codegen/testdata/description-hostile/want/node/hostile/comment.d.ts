import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "comment" of server "hostile", wrapped by Airlock. Definition: sha256:3cc0ddbf655287f3a95f882666c83e54694914d860892031b39869b195939454. */

export interface CommentInput {
  /** *\/ export default 1; /*. */
  a?: string;
  /** \@ts-ignore. */
  b?: string;
}

/**
 * Ends *\/ comments //
 * \@ts-ignore
 *  * \@type {import("fs")} x
 * {\@link x} me@example.com
 * /*# sourceMappingURL=x *\/
 */
export declare function comment(args?: CommentInput): Promise<ToolResult<unknown>>;
