import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "choose" of server "unions", wrapped by Airlock. Definition: sha256:8f4b5b452d899872e2984447f016dfdbc661f20d0ddc4becd16e065ebf99b8ca. */

export interface ChooseInput {
  either?: string | number;
  one?: ChooseInputOne | ChooseInputOne_2;
  maybe: number | null;
  many?: string | string[] | { [key: string]: unknown } | boolean;
  nothing?: never;
  anything?: unknown;
  empty?: unknown;
  same?: number;
  flag?: true;
  level?: 1 | 2 | -3;
  mixed?: "a" | true | number | { [key: string]: unknown } | unknown[] | null;
  huge?: number;
  wide?: "a" | "b" | "c";
  any?: unknown;
  typo?: "1" | "2";
}

export interface ChooseInputOne {
  kind: "a";
  x?: number;
}

export interface ChooseInputOne_2 {
  kind: "b";
  y?: string;
}

/** Alternatives of all kinds */
export declare function choose(args: ChooseInput): Promise<ToolResult<unknown>>;
