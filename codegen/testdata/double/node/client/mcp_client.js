// A double of the sandbox's client: it records calls instead of making them.

import { writeSync } from "node:fs";

export class ToolResult {
  constructor(data) {
    this.data = data;
  }
}

export class ToolError extends Error {}

export async function invoke(serverId, name, args, wrapper) {
  writeSync(1, JSON.stringify([serverId, name, args, wrapper]) + "\n");
  return new ToolResult(args);
}
