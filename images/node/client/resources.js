// Lists and reads the resources of MCP servers.
//
//     const found = await listResources({ serverId: "docs" });
//     const guide = await readResource(found[0]);

import { respelled } from "./arguments.js";
import { encode } from "./encode.js";
import { call } from "./kept.js";
import { errorOf, ToolResult } from "./result.js";
import { request } from "./transport.js";

const { parse } = JSON;

/**
 * Returns the resources of all servers, or of one, as `{serverId, name, uri}` or, for
 * many resources of one form, `{serverId, name, uriTemplate}` (RFC 6570), with `title`,
 * `description` and `mimeType` if the server gives them. Throws a ToolError (type
 * "RateLimit") when the code lists too often.
 */
export async function listResources(...given) {
  const { serverId } = wanted("listResources", given, ["serverId"]);
  const found = [];
  for (;;) {
    const params = { server_id: serverId, offset: found.length };
    const answer = await request("catalog/resources", encode(params, "arguments"));
    if (answer.error) throw errorOf(answer.error);
    found.push(...answer.resources);
    if (found.length >= answer.total || answer.resources.length === 0) return found;
  }
}

/**
 * Reads a resource and returns a ToolResult. Its `data` is a string, the value of a JSON
 * resource, or a Uint8Array; for a resource with several parts, it is an array of `{uri,
 * mimeType, text}` or `{uri, mimeType, data}`. `raw` is the ReadResourceResult. Throws a
 * ToolError, as the call of a tool does.
 */
export async function readResource(...given) {
  const { serverId, uri } = wanted("readResource", given, ["serverId", "uri"]);
  for (const [key, value] of [["serverId", serverId], ["uri", uri]]) {
    if (typeof value === "string" && value) continue;
    const got = value === undefined ? "none" : JSON.stringify(value);
    throw new TypeError(`readResource needs ${key}, as in readResource("docs", "doc://guide"); it got ${got}`);
  }
  const params = { server_id: serverId, name: `resource:${uri}`, arguments: {} };
  const answer = await call(encode(params, "arguments"));
  if (!answer.ok) throw errorOf(answer.error, answer.raw);
  const parts = answer.raw.contents.map(partOf);
  return new ToolResult(parts.length === 1 ? contentOf(parts[0]) : parts, answer.raw);
}

/** Returns one content with bytes in place of base64. */
function partOf({ blob, ...part }) {
  return blob === undefined ? part : { ...part, data: new Uint8Array(Buffer.from(blob, "base64")) };
}

function contentOf(part) {
  if (part.text === undefined) return part.data ?? new Uint8Array();
  if (!String(part.mimeType ?? "").includes("json")) return part.text;
  try {
    return parse(part.text);
  } catch {
    return part.text;
  }
}

/** Reads arguments that are given by position or in one object. */
function wanted(name, given, keys) {
  const [first, second] = given;
  if (typeof first !== "object" || first === null) return { serverId: first, uri: second };
  const { serverId, server, uri, title, description, mimeType, name: _, uriTemplate, ...rest } = respelled(first, keys);
  for (const key of Object.keys(rest)) {
    throw new TypeError(`${name} has no argument ${key}; it takes ${keys.join(", ")}`);
  }
  return { serverId: serverId ?? server, uri };
}

export { listResources as list_resources, readResource as read_resource };
