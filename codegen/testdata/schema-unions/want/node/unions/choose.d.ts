import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "choose" of server "unions", wrapped by Airlock. Definition: sha256:cdbb98359f371fefdd311a87f4bd70041eb7024e9ed6c59d541ef0dd82696acc. */

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
