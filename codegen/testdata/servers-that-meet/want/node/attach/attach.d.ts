import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "attach" of server "attach", wrapped by Airlock. Definition: sha256:6cf07475deb70e46baae3abcc05f083b8c181d1eb85d3964ef6235482ee3b97d. */

export interface AttachInput {
}

/** A server named like our own code */
export declare function attach(args?: AttachInput): Promise<ToolResult<unknown>>;
