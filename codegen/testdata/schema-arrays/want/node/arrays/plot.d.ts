import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "plot" of server "arrays", wrapped by Airlock. Definition: sha256:08155f0c2f635bdaae0590ee1d0b8e47ba94cff0e446d6aca0299510260722d8. */

export interface PlotInput {
  any?: unknown[];
  /** 1 to 5 items. */
  texts?: string[];
  /** At least 2 items. */
  pair?: [number, number];
  rest?: [string?, ...number[]];
  old?: [string?, (number | null)?, ...boolean[]];
  points?: PlotInputPoints[][];
  either?: (string | number)[];
}

export interface PlotInputPoints {
  x: number;
  y: number;
}

export interface PlotOutput {
  /** At least 2 items. */
  pair?: [number, string];
}

/** Arrays, and tuples as both drafts write them */
export declare function plot(args?: PlotInput): Promise<ToolResult<PlotOutput>>;
