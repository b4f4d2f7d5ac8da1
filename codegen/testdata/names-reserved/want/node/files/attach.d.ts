import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "attach" of server "files", wrapped by Airlock. Definition: sha256:26f521e11c02ce35113b62903d49be43cc9446f0bd3776d9d5edfc0247b67c34. */

export interface AttachInput {
}

/** The tool print */
export declare function attach(args?: AttachInput): Promise<ToolResult<unknown>>;
