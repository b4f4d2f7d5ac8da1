// A plain MCP client: looks for tools, runs a program in Airlock, and prints its result.
//
//   npx tsx mcp-client.ts [FILE]
//
// FILE is a JavaScript or TypeScript program; without it, a small one runs. Environment: AIRLOCK is the command of
// Airlock.

import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const CODE = "let sum: number = 0; for (let n = 1; n <= 100; n++) sum += n * n; export default sum;";

const client = new Client({ name: "example", version: "1.0.0" });
const env = process.env as Record<string, string>;
await client.connect(new StdioClientTransport({ command: env.AIRLOCK ?? "airlock", args: ["mcp"], env }));
try {
  const { tools } = await client.listTools();
  console.error(`tools: ${tools.map((tool) => tool.name).join(", ")}`);
  const code = process.argv[2] ? readFileSync(process.argv[2], "utf8") : CODE;
  // A run may take minutes, and a person may have to be asked: the default of 60 s is too short.
  const limits = { timeout: 600_000, resetTimeoutOnProgress: true };
  const answer = await client.callTool({ name: "run_code", arguments: { language: "node", code } }, undefined, limits);
  console.log(JSON.stringify(answer.structuredContent));
} finally {
  await client.close();
}
