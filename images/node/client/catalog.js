// Finds tools: first names and descriptions, then one whole definition.
//
//     const [first] = await catalog.searchTools({ query: "create an issue" });
//     const definition = await catalog.getToolDefinition({ serverId: first.serverId, name: first.toolName });

import { callOf, respelled } from "./arguments.js";
import { encode } from "./encode.js";
import { errorOf } from "./result.js";
import { request } from "./transport.js";

const SEARCH = ["query", "serverId", "detail", "limit"];

/**
 * Searches the tools of all servers, or of one. Returns the tools found, best
 * first, as `{serverId, toolName, title?, description?}`; `detail` is "name" or
 * "name+description". The array's `missing` lists the servers that could not be
 * searched, as `{serverId, problem}`. Throws a ToolError (type "RateLimit") when
 * the code searches too often.
 */
export async function searchTools(search = {}) {
  const given = typeof search === "string" ? { query: search } : respelled(search, SEARCH);
  const { query = "", serverId, detail = "name+description", limit, ...rest } = given;
  refuseUnknown(rest, "searchTools", "query, serverId, detail, limit");
  const answer = await request("catalog/search", encode({ query, server_id: serverId, detail, limit }, "arguments"));
  if (answer.error) throw errorOf(answer.error);
  Object.defineProperty(answer.tools, "missing", { value: answer.missingServers ?? [] });
  return answer.tools;
}

/**
 * Returns the whole definition of one tool, as its server sent it. Throws a
 * ToolError (type "UnknownTool") when there is no such tool.
 */
export async function getToolDefinition(...tool) {
  const [first] = tool;
  if (typeof first === "object" && first !== null) {
    const { title, description, ...wanted } = first; // the results of searchTools have more members than needed
    tool[0] = wanted;
  }
  const { serverId, name } = callOf("getToolDefinition", tool);
  const answer = await request("catalog/get", encode({ server_id: serverId, name }, "arguments"));
  if (answer.error) throw errorOf(answer.error);
  return answer.definition;
}

function refuseUnknown(rest, name, known) {
  for (const key of Object.keys(rest)) throw new TypeError(`${name} has no argument ${key}; it takes ${known}`);
}

/** Both functions under one name. */
export const catalog = { searchTools, getToolDefinition };
export { getToolDefinition as get_tool_definition, searchTools as search_tools };
