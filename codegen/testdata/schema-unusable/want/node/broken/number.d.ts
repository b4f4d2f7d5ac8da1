import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "number" of server "broken", wrapped by Airlock. Definition: sha256:149cbdd9a10b138784f5a0cc845adf67c2bb95d6ebbbacef1f5cd5947274ea64. */

export type NumberInput = { [key: string]: unknown };

/** No schema at all */
export declare function number(args?: NumberInput): Promise<ToolResult<unknown>>;
