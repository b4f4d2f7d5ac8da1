import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "comments" of server "hostile", wrapped by Airlock. Definition: sha256:38259df3e3d82158887370d47712bba0071f6ead396718e1080fc4050951a7e8. */

export interface CommentsInput {
}

/**
 * # -*- coding: latin-1 -*-
 * # type: ignore
 * # pyright: basic
 * // \@ts-nocheck
 * /// <reference path="/etc/passwd" />
 * #!/bin/sh
 */
export declare function comments(args?: CommentsInput): Promise<ToolResult<unknown>>;
