// Calls wrappers as a list on stdin says, each imported in one of the ways there are.

import { readFileSync } from "node:fs";

const calls = JSON.parse(readFileSync(0, "utf8"));
for (const [number, call] of calls.entries()) {
  const file = number % 2 === 0 ? "index" : call.file;
  const module = await import(`./servers/${call.module}/${file}.js`);
  const result = await module[call.function](call.arguments);
  if (result.data !== call.arguments) throw new Error(`${call.function}: other arguments`);
}
