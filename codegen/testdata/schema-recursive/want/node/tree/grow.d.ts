import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "grow" of server "tree", wrapped by Airlock. Definition: sha256:781329fa32a60555471115e695731d27dd677a4e5abdda776e4b2c08cadbfda8. */

export interface GrowInput {
  root: GrowInputNode;
}

/** A node of a tree. */
export interface GrowInputNode {
  name: string;
  children?: GrowInputNode[];
  parent?: GrowInputNode | null;
}

/** A recursive definition */
export declare function grow(args: GrowInput): Promise<ToolResult<unknown>>;
