// The results of tool calls: ToolResult on success, ToolError on failure.

const { parse, stringify } = JSON;
const { isArray } = Array;
const { defineProperty, keys } = Object;

const MOST_MEMBERS = 100;

/** Lets code write `page.items` for `page.data.items`, if the result has no `items` itself. */
function offerMembers(result, data) {
  for (const key of keys(data).slice(0, MOST_MEMBERS)) {
    if (!(key in result)) {
      defineProperty(result, key, { configurable: true, get: () => data[key], set: (value) => (data[key] = value) });
    }
  }
}

/**
 * The result of a tool call that worked.
 *
 * - `data`: the value: the structured content if there is one; else the one text
 *   block, parsed if it is a JSON object or array; else that text; else the list
 *   of content blocks.
 * - `raw`: the whole CallToolResult (MCP 2025-11-25, tools/call) as it came.
 * - `structuredContent`, `content`, `isError`: the members of `raw`;
 * - the members of `data`, if it is an object, under names that are not in use.
 *
 * As a result of the code and in text, it is replaced by its `data`.
 */
export class ToolResult {
  constructor(data, raw) {
    this.ok = true;
    this.data = data;
    this.raw = raw;
    if (typeof data === "object" && data !== null && !isArray(data)) offerMembers(this, data);
  }

  get structuredContent() {
    return this.raw.structuredContent;
  }

  get content() {
    return this.raw.content;
  }

  get isError() {
    return this.raw.isError ?? false;
  }

  toJSON() {
    return this.data;
  }

  toString() {
    return typeof this.data === "string" ? this.data : stringify(this.data);
  }
}

/**
 * A tool call that failed.
 *
 * - `type`: one of Airlock's error types, such as "ToolError" (the tool itself
 *   reported it), "ValidationError", "UnknownTool", "PolicyDenied", "Timeout";
 * - `message`: what to do about it, in a sentence;
 * - `retryable`: whether the same call may work later;
 * - `result`: the raw CallToolResult when the tool itself failed;
 * - `callId`, `source`: the call in the audit log, and who refused it ("tool",
 *   "broker", "sandbox" or "code");
 * - `file`: the file with the whole result, if it was too large for an answer.
 */
export class ToolError extends Error {
  constructor(type, message, { retryable = false, result, callId, source = "broker", file } = {}) {
    super(message);
    this.name = "ToolError";
    this.type = type;
    this.retryable = retryable;
    this.result = result;
    this.callId = callId;
    this.source = source;
    this.file = file;
  }
}

/** Turns the broker's answer to tools/call into a ToolResult, or throws its ToolError. */
export function resultOf(answer) {
  if (answer.ok) return new ToolResult(dataOf(answer.raw), answer.raw);
  throw errorOf(answer.error, answer.raw);
}

/** Returns the ToolError for an error object of the broker. */
export function errorOf(error, raw) {
  const { type, message, retryable, call_id: callId, source, file } = error;
  return new ToolError(type, message, { retryable: retryable === true, result: raw, callId, source, file });
}

/** Returns the value of a CallToolResult, as ToolResult describes it. */
export function dataOf(raw) {
  if (raw.structuredContent !== undefined && raw.structuredContent !== null) return raw.structuredContent;
  const { content } = raw;
  if (!Array.isArray(content) || content.length !== 1) return content;
  const [block] = content;
  if (block?.type !== "text" || typeof block.text !== "string") return content;
  if (!/^[ \t\r\n]*[{[]/.test(block.text)) return block.text;
  try {
    return parse(block.text);
  } catch {
    return block.text;
  }
}
