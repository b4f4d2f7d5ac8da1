import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "at_least_one" of server "unions", wrapped by Airlock. Definition: sha256:9dd331086bc403b2a2800830e25e47c7e1d96914ab5c97d77f63b31593febcc5. */

/** Needs "id", or "name". */
export interface AtLeastOneInput {
  id?: string;
  name?: string;
}

/** Alternatives that only demand keys */
export declare function atLeastOne(args: AtLeastOneInput): Promise<ToolResult<unknown>>;
