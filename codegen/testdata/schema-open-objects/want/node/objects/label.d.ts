import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "label" of server "objects", wrapped by Airlock. Definition: sha256:658063fa173af84ee5157d835b8bbb34fe62010456cebefcdc5f94b74ef9254a. */

export interface LabelInput {
  bare?: { [key: string]: unknown };
  labels?: { [key: string]: string };
  open?: LabelInputOpen;
  closed?: LabelInputClosed;
  none?: LabelInputNone;
  typed?: LabelInputTyped;
  patterned?: { [key: string]: string | number };
  named?: LabelInputNamed;
}

export interface LabelInputOpen {
  id?: string;
  [key: string]: unknown;
}

export interface LabelInputClosed {
  id?: string;
}

export interface LabelInputNone {
}

export interface LabelInputTyped {
  id?: string;
  [key: string]: unknown;
}

export interface LabelInputNamed {
  de?: string;
  en?: string;
}

export interface LabelOutput {
  id: string;
  [key: string]: unknown;
}

/** Objects with and without known keys */
export declare function label(args?: LabelInput): Promise<ToolResult<LabelOutput>>;
