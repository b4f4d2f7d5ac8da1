// An agent of the Vercel AI SDK that works by writing programs for Airlock.
//
//   npx tsx vercel-ai.ts [TASK]
//
// Environment: OPENAI_API_KEY, MODEL (default gpt-5), and AIRLOCK, the command of Airlock.

import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const TASK = "What is the sum of the squares of the numbers from 1 to 100? Compute it with a program.";

const env = process.env as Record<string, string>;
const transport = new StdioTransport({ command: env.AIRLOCK ?? "airlock", args: ["mcp"], env });
const airlock = await createMCPClient({ transport });
try {
  const { text } = await generateText({
    model: openai(env.MODEL ?? "gpt-5"),
    tools: await airlock.tools(),
    stopWhen: stepCountIs(20),
    prompt: process.argv.slice(2).join(" ") || TASK,
  });
  console.log(text);
} finally {
  await airlock.close();
}
