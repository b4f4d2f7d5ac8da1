// Says how to repair code that failed for a reason that is common in here.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { FILE } from "./file.mjs";

const SERVERS = "/workspace/servers";

/** Returns advice on what was thrown, or "". */
export function hint(thrown, message, code) {
  for (const advise of [commonJS, wrongExport, wrongFunction, missingModule, noNetwork, typeScript]) {
    const advice = advise(thrown, message, code);
    if (advice) return advice;
  }
  return "";
}

/**
 * Returns the line that a syntax error of the code is in, as Node shows it, or "".
 * The error itself does not say; `node --check` does.
 */
export function syntaxLocation(thrown) {
  if (!(thrown instanceof SyntaxError) || /^\s+at .*agent_code\.mjs:/m.test(thrown.stack)) return "";
  const check = spawnSync(process.execPath, ["--check", FILE], { encoding: "utf8", timeout: 5000 });
  const shown = check.stderr?.split("\nSyntaxError")[0];
  return check.status ? `${shown.trimEnd()}\n` : "";
}

function commonJS(thrown, message, code) {
  if (!(thrown instanceof ReferenceError)) return "";
  const [, name] = /^(\w+) is not defined/.exec(message) ?? [];
  switch (name) {
    case "require": {
      const [, module] = /\brequire\(\s*["'`]([^"'`]+)["'`]\s*\)/.exec(code) ?? [];
      return `the code is an ES module: write \`import x from ${JSON.stringify(module ?? "node:fs")}\` at its top`;
    }
    case "module":
    case "exports":
      return "the code is an ES module and exports nothing: write `globalThis.result = …`";
    case "__dirname":
      return "the code is an ES module: write `import.meta.dirname`";
    case "__filename":
      return "the code is an ES module: write `import.meta.filename`";
  }
  return "";
}

/** `import { ecko } from "./servers/demo/index.js"` */
function wrongExport(thrown, message) {
  const [, specifier, name] = /requested module '(.+)' does not provide an export named '(.+)'/.exec(message) ?? [];
  return name ? nearestExport(name, specifier) : "";
}

/**
 * `demo.ecko(…)` after `import * as demo from "./servers/demo/index.js"`, or after
 * `demo = await import(…)`; `ecko(…)` after `({ ecko } = await import(…))`
 */
function wrongFunction(thrown, message, code) {
  const [, alias, name] = /^(?:\(intermediate value\)|(\w+))\.(\w+) is not a function/.exec(message) ??
    /^()(\w+) is not a function/.exec(message) ?? [];
  if (!name) return "";
  const imports = alias
    ? [`import\\s*\\*\\s*as\\s+${alias}\\s+from\\s*`, `\\b${alias}\\s*=\\s*await\\s+import\\(\\s*`]
    : [`\\{[^{}]*\\b${name}\\b[^{}]*\\}\\s*=\\s*await\\s+import\\(\\s*`];
  for (const each of imports) {
    const [, specifier] = new RegExp(`${each}["']([^"']+)["']`).exec(code) ?? [];
    if (specifier) return nearestExport(name, specifier);
  }
  if (alias === "") return "";
  return /^(?:map|filter|forEach|reduce|find|slice|some|every|join|split|trim|includes|flatMap|sort)$/.test(name)
    ? "if it came from a wrapper, it is a ToolResult: its plain value is in `.data`"
    : "";
}

function missingModule(thrown, message) {
  if (thrown?.code !== "ERR_MODULE_NOT_FOUND") return "";
  const [, module] = /Cannot find module '\/workspace\/servers\/([^/']+)/.exec(message) ?? [];
  if (module) return missingServer(module);
  const [, name] = /Cannot find package '([^']+)'/.exec(message) ?? [];
  if (name) return isBuiltin(name) ? "" : "only Node's own modules and the wrappers in ./servers are installed";
  if (/servers\//.test(message)) return 'wrappers are imported as `import * as x from "./servers/<server>/index.js"`';
  return "";
}

function missingServer(module) {
  if (existsSync(`${SERVERS}/${module}/index.js`)) {
    return `write \`import * as ${module} from "./servers/${module}/index.js"\``;
  }
  const known = readdirSync(SERVERS, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return nearest(
    module,
    known.map((entry) => entry.name),
    "./servers",
  );
}

function noNetwork(thrown) {
  const code = thrown?.code ?? thrown?.cause?.code;
  return /^(?:ENETUNREACH|EHOSTUNREACH|EAI_AGAIN|ENOTFOUND)$/.test(code)
    ? "the sandbox has no network: call tools through the wrappers in ./servers"
    : "";
}

function typeScript(thrown, message, code) {
  if (!(thrown instanceof SyntaxError)) return "";
  return /\bas any\b|^\s*(?:interface|type)\s+\w+|\w\s*:\s*(?:string|number|boolean|any|unknown)\b/m.test(code)
    ? "this looks like TypeScript: write JavaScript"
    : "";
}

/** Suggests what a wrapper's module exports, read from its text, or says why its server is missing. */
function nearestExport(name, specifier) {
  if (!specifier.startsWith("./servers/") && !specifier.startsWith("./client/")) return "";
  const text = readFileSync(new URL(specifier, "file:///workspace/"), "utf8");
  const [, problem] = /^export const problem = (".*");$/m.exec(text) ?? [];
  if (problem) return JSON.parse(problem);
  const names = [...text.matchAll(/^export\s+(?:async\s+)?(?:function|const|class)\s+([\w$]+)/gm)].map(
    (match) => match[1],
  );
  for (const [, list] of text.matchAll(/^export\s*\{([^}]*)\}/gm)) {
    names.push(
      ...list
        .split(",")
        .map((item) =>
          item
            .trim()
            .split(/\s+as\s+/)
            .at(-1),
        )
        .filter(Boolean),
    );
  }
  return nearest(name, names, specifier);
}

function nearest(name, known, place) {
  const close = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => candidate !== name && distance <= Math.max(2, name.length / 3))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
  if (close.length) return `did you mean ${close.join(" or ")}?`;
  if (!known.length) return "";
  const more = known.length > 20 ? ` and ${known.length - 20} more` : "";
  return `${place} has: ${known.slice(0, 20).join(", ")}${more}`;
}

/** Returns how many characters have to change to make one word of the other (Levenshtein). */
function editDistance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
  }
  return row[b.length];
}
