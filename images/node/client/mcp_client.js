// Calls tools of MCP servers through Airlock's broker.
//
// Generated wrappers use `invoke`; code that wants the tool's original name, or
// no exceptions, uses `callTool`.

import { callOf } from "./arguments.js";
import { encode, NotSerializable } from "./encode.js";
import { call } from "./kept.js";
import { resultOf, ToolError, ToolResult } from "./result.js";

export { ToolError, ToolResult };

/**
 * Calls a tool and returns what happened: `{ok: true, data, raw}` or `{ok: false,
 * error: {type, message, retryable, …}, raw?}`. No failure of the tool throws.
 * `data` is described at ToolResult, `raw` is the CallToolResult. The call is
 * `{serverId, name, arguments}`; other usual spellings work too.
 */
export async function callTool(...given) {
  const { serverId, name, args } = callOf("callTool", given);
  try {
    const { data, raw } = await invoke(serverId, name, args);
    return { ok: true, data, raw };
  } catch (failure) {
    if (!(failure instanceof ToolError)) throw failure;
    const { type, message, retryable, source, callId, file, result } = failure;
    const error = { type, message, retryable, source };
    if (callId !== undefined) error.call_id = callId;
    if (file !== undefined) error.file = file;
    return result === undefined ? { ok: false, error } : { ok: false, error, raw: result };
  }
}

export { callTool as call_tool };

/**
 * Calls a tool and returns a promise of its ToolResult, which rejects with a
 * ToolError. `wrapper` is the name that messages use for the call; `name` by
 * default. Using the promise as if it were the result throws a TypeError that
 * names the missing `await`.
 */
export function invoke(serverId, name, args, wrapper = name) {
  const claim = claimedLine();
  return new Call(wrapper, (resolve, reject) => {
    send(serverId, name, args ?? {}, wrapper, claim).then(resolve, reject);
  });
}

/** Says which line of the code makes the call, for a person who may be asked about it. */
function claimedLine() {
  try {
    const own = Error.prepareStackTrace;
    Error.prepareStackTrace = lineOfCode; // the text of a stack costs more than the rest of a call here
    const line = new Error().stack;
    if (own === undefined) delete Error.prepareStackTrace;
    else Error.prepareStackTrace = own;
    return typeof line === "number" ? `,"line":${line}` : "";
  } catch {
    return ""; // the code has its own ideas of stacks
  }
}

/** Returns the line of the code in a stack, as V8 has it. */
function lineOfCode(_, stack) {
  for (let i = 0; i < stack.length; i++) {
    if (stack[i].getFileName()?.includes("agent_code.mjs")) return stack[i].getLineNumber();
  }
}

async function send(serverId, name, args, wrapper, claim) {
  if (typeof args !== "object" || Array.isArray(args)) {
    const got = Array.isArray(args) ? "an array" : `a ${typeof args}`;
    const message = `${wrapper} takes one object of arguments, as in ${wrapper}({...}); it got ${got}`;
    throw new ToolError("ValidationError", message, { source: "code" });
  }
  let params;
  try {
    const tool = `"server_id":${encode(serverId, "serverId")},"name":${encode(name, "name")}`;
    params = `{${tool},"arguments":${encode(args, "arguments")}${claim}}`;
  } catch (problem) {
    if (!(problem instanceof NotSerializable)) throw problem;
    throw new ToolError("ValidationError", problem.message, { source: "code" });
  }
  return resultOf(await call(params));
}

/** The promise of a call, with a helpful error if it is used as the result. */
class Call extends Promise {
  static get [Symbol.species]() {
    return Promise;
  }

  constructor(wrapper, executor) {
    super(executor);
    Object.defineProperty(this, "airlockCall", { value: wrapper });
  }
}

// `await` takes a promise as it is, without a further turn of the event loop,
// only if its constructor is Promise.
Object.defineProperty(Call.prototype, "constructor", { value: Promise });

for (const member of [
  "ok",
  "data",
  "raw",
  "structuredContent",
  "content",
  "isError",
  "length",
  "map",
  "filter",
  "forEach",
  "slice",
]) {
  Object.defineProperty(Call.prototype, member, {
    get() {
      const call = `${this.airlockCall}(...)`;
      throw new TypeError(`${call} was not awaited, so it has no ${member} yet: write \`await ${call}\``);
    },
  });
}
