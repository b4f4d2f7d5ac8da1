/** The result of a tool, byte for byte as the server sent it (MCP 2025-11-25, CallToolResult). */
export interface RawResult {
  content?: unknown[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  [member: string]: unknown;
}

/** The result of a tool call that worked. */
export declare class ToolResult<T = unknown> {
  readonly ok: true;
  /** The structured content; else the only text block, parsed if it is a JSON object or array; else all blocks. */
  readonly data: T;
  readonly raw: RawResult;
  readonly structuredContent: RawResult["structuredContent"];
  readonly content: RawResult["content"];
  readonly isError: boolean;
}

/** A tool call that failed. */
export declare class ToolError extends Error {
  /** One of Airlock's error types, such as "ToolError", "ValidationError" or "PolicyDenied". */
  readonly type: string;
  /** Whether the same call may work later. */
  readonly retryable: boolean;
  /** The result of the tool, if the tool itself failed. */
  readonly result?: RawResult;
  readonly callId?: string;
  readonly source: "tool" | "broker" | "sandbox" | "code";
  /** The file with the whole result, if it was too large for an answer. */
  readonly file?: string;
}

/** What `callTool` returns. */
export type ToolCallResult<T = unknown> =
  | { ok: true; data: T; raw: RawResult }
  | {
      ok: false;
      error: { type: string; message: string; retryable: boolean; source: string; call_id?: string; file?: string };
      raw?: RawResult;
    };

/** Calls a tool by its original name; no failure of the tool throws. */
export declare function callTool<T = unknown>(call: {
  serverId: string;
  name: string;
  arguments?: Record<string, unknown>;
}): Promise<ToolCallResult<T>>;

/** Calls a tool; rejects with a ToolError. Generated wrappers use this. */
export declare function invoke<T = unknown>(
  serverId: string,
  name: string,
  args?: object,
  wrapper?: string,
): Promise<ToolResult<T>>;

export { callTool as call_tool };
