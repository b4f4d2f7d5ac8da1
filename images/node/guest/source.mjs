// Where the code's text is kept: written to /workspace and imported from there,
// because then import.meta, relative imports, workers and Node's own messages are
// what they would be anywhere. A sourceURL comment after the last line makes
// stack traces call it <agent_code>; the code's own lines keep their numbers.

import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** The file that holds the code, which stack traces call <agent_code>. */
export const FILE = "/workspace/agent_code.mjs";

/** Writes the code to FILE and returns its URL. */
export function writeSource(code) {
  writeFileSync(FILE, `${code}\n//# sourceURL=<agent_code>\n`);
  return pathToFileURL(FILE).href;
}
