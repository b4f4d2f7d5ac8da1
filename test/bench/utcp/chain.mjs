// UTCP's code mode with one MCP server on stdio behind it: chain.mjs NAME COMMAND
// [ARGUMENT...]. Each line on stdin is a program as a JSON string, and is answered with a
// line of JSON: the result of the program, or its error.

import { createInterface } from "node:readline";
import "@utcp/mcp";
import { CodeModeUtcpClient } from "@utcp/code-mode";

// stdout has answers only, and what the library tells of each call costs nothing.
for (const method of ["log", "info", "warn", "debug"]) console[method] = () => {};

const [name, command, ...args] = process.argv.slice(2);
const client = await CodeModeUtcpClient.create();
const found = await client.registerManual({
  name,
  call_template_type: "mcp",
  config: { mcpServers: { [name]: { transport: "stdio", command, args } } },
});
if (!found.success) throw new Error(`no tools: ${found.errors}`);

for await (const line of createInterface({ input: process.stdin })) {
  const { result, logs } = await client.callToolChain(JSON.parse(line));
  process.stdout.write(`${JSON.stringify({ result, logs })}\n`);
}
await client.close();
