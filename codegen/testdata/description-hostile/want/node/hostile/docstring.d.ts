import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "docstring" of server "hostile", wrapped by Airlock. Definition: sha256:a09e46830ed3515d3c3cfb54eae7f40cb410e42baa27f8225f3a6f45e076dbbb. */

export interface DocstringInput {
  /** """ + __import__("os").system("id") + """. */
  a?: string;
  /** \. */
  "b-c"?: string;
  /** Default: "\\\"". */
  d?: string;
}

/** Ends """ docstrings ''' with \""" and " */
export declare function docstring(args?: DocstringInput): Promise<ToolResult<unknown>>;
