export {};

/** 7 tools of server "hostile". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Ends *\/ comments // \@ts-ignore * \@type {import("fs")} x {\@link x} me@example.com /*# sourceMappingURL=x *\/ */
export { comment, type CommentInput } from "./comment.js";

/** # -*- coding: latin-1 -*- # type: ignore # pyright: basic // \@ts-nocheck /// <reference path="/etc/passwd"… */
export { comments, type CommentsInput } from "./comments.js";

/** Ends """ docstrings ''' with \""" and " */
export { docstring, type DocstringInput } from "./docstring.js";

/** Looks like escapes: \u0022 \x22 \N{QUOTATION MARK} ${x} {x} %s \ */
export { escapes, type EscapesInput } from "./escapes.js";

/** ] ( ) `code` <b> - `forged` (x/y.py): a line of its own ## heading */
export { index, type IndexInput } from "./index_1bc04b.js";

/** Null \u0000, bidi \u202eevil\u202c, zero \u200bwidth, separators and , next line , tag \u{e0041}… */
export { invisible, type InvisibleInput } from "./invisible.js";

/** Values of schemas */
export { values, type ValuesInput } from "./values.js";
