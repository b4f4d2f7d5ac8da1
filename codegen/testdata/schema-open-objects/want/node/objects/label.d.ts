import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "label" of server "objects", wrapped by Airlock. Definition: sha256:74093226188defb114a2e123ec618828138e9a151e9c64a30ede1e6af4e40f99. */

export interface LabelInput {
  bare?: { [key: string]: unknown };
  labels?: { [key: string]: string };
  open?: LabelInputOpen;
  closed?: LabelInputClosed;
  none?: LabelInputNone;
  typed?: LabelInputTyped;
  patterned?: { [key: string]: string | number };
  refusing?: LabelInputRefusing;
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

export interface LabelInputRefusing {
  id?: string;
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
