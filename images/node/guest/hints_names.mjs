// Advice on names that do not exist: misspelt ones, tools of servers, what other
// products and other languages offer. The comment of each function shows the mistakes
// that it gives advice on. A function returns "" for other errors.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";

const SERVERS = "/workspace/servers";
const IMPORT = 'wrappers are imported as `import * as x from "./servers/<server>/index.js"`';

/** What other products call the object, or the function, that leads to tools. */
export const PRODUCTS = new RegExp(
  "^(?:codemode|tools?|mcp|mcp_?client|client|functions?|default_api|toolbox|toolkit|servers?|session|container" +
    "|airlock|api|sdk|agent|apis|utcp|env)$",
  "i",
);
const CALLERS =
  /^(?:call_?tool|call_?mcp_?tool|run_?tool|invoke_?tool|use_?mcp_?tool|execute_?tool|invoke|mcp_?call)$/i;

const WORDS = {
  print: "write console.log(…)",
  None: "write null",
  True: "write true",
  False: "write false",
  len: "write x.length",
  str: "write String(x)",
  int: "write Number(x)",
  dict: "write an object",
  range: "write a for loop",
  json: "write JSON.stringify(…) or JSON.parse(…)",
  asyncio: "write `await Promise.all([…])`",
  module: "the code is an ES module and exports nothing: write `globalThis.result = …`",
  exports: "the code is an ES module and exports nothing: write `globalThis.result = …`",
  __dirname: "the code is an ES module: write `import.meta.dirname`",
  __filename: "the code is an ES module: write `import.meta.filename`",
  window: "this is Node, not a browser: write globalThis",
  self: "this is Node, not a browser: write globalThis",
  XMLHttpRequest: "the sandbox has no network: call tools through the wrappers in ./servers",
  EventSource: "the sandbox has no network: call tools through the wrappers in ./servers",
  sessionStorage: "this is Node, not a browser, and nothing is kept between runs",
  Worker: "write `import { Worker } from \"node:worker_threads\"`",
  document: "this is Node, not a browser: it has no document",
  localStorage: "this is Node, not a browser, and nothing is kept between runs",
  alert: "this is Node, not a browser: write console.log(…)",
  prompt: "stdin is empty in here: put the values into the code",
  Deno: "this is Node: use its own modules, as in `import fs from \"node:fs\"`",
  Bun: "this is Node: use its own modules, as in `import fs from \"node:fs\"`",
  axios: "the sandbox has no network: call tools through the wrappers in ./servers",
  sleep: "write `await new Promise((done) => setTimeout(done, ms))`",
  delay: "write `await new Promise((done) => setTimeout(done, ms))`",
  $: "this is Node: jQuery is not installed, and commands run by `execSync` of \"node:child_process\"",
  _: "only Node's own modules and the wrappers in ./servers are installed: use the methods of arrays and objects",
};
const TYPES = /^(?:string|number|boolean|any|unknown|never|void|object|Record|Partial|Array)$/;

function undefinedName(thrown, message, code) {
  if (!(thrown instanceof ReferenceError)) return "";
  if (/before initialization$/.test(message)) {
    return "it is used above the line that declares it: move the declaration up";
  }
  const [, name] = /^([\w$]+) is not defined/.exec(message) ?? /both '(\w+)' and top-level await/.exec(message) ?? [];
  if (!name) return "";
  if (name === "require") {
    const required = /(?:(?:const|let|var)\s+(\w+|\{[^{}:]*\})\s*=\s*)?\brequire\(\s*["'`]([^"'`]+)["'`]\s*\)/;
    const [, names = "x", module = "node:fs"] = required.exec(code) ?? [];
    const [, server] = /^(?:\.{0,2}\/)?servers\/([\w.-]+?)(?:\/(?:index(?:\.[cm]?[jt]s)?)?)?$/.exec(module) ?? [];
    const of = server && !names.startsWith("{") ? `* as ${names}` : names;
    const from = server ? `./servers/${server}/index.js` : module;
    return `the code is an ES module: write \`import ${of} from ${JSON.stringify(from)}\` at its top`;
  }
  if (Object.hasOwn(WORDS, name)) return WORDS[name];
  if (TYPES.test(name)) {
    return "types are stripped only where the code does not parse as JavaScript: leave the type out";
  }
  if (/^search_?tools$|^get_?tool_?definition$/i.test(name)) {
    return `write \`import { ${name} } from "./client/catalog.js"\``;
  }
  if (name === "catalog") return 'write `import { catalog } from "./client/catalog.js"`';
  if (CALLERS.test(name)) {
    return `write \`import { callTool } from "./client/mcp_client.js"\`; better, the wrapper: ${example(code)}`;
  }
  return elsewhere(name, code);
}

/** Suggests the origin of a name that the code does not define. */
function elsewhere(name, code) {
  const server = serverNamed(name);
  if (server) return `write \`import * as ${name} from "./servers/${server}/index.js"\``;
  const found = toolsNamed(name);
  if (found.length) return importOf(found);
  if (PRODUCTS.test(name)) return `tools are imported: ${example(code)}`;
  if (isBuiltin(name)) return `write \`import ${name} from "node:${name}"\``;
  const names = declared(code);
  if (names.includes(name)) {
    return `it is declared inside a function or block: declare \`let ${name}\` before it, or return it from there`;
  }
  const [, near] = nearestOf(name, names) ?? [];
  return near ?? `this program defines it nowhere, and no variable of an earlier run is left: define ${name} in here`;
}

function declared(code) {
  const binding = /\b(?:const|let|var|function|class|import)\s+(?:\*\s+as\s+)?([\w$]+)|[{,]\s*([\w$]+)\s*(?=[,}])/g;
  return [...new Set([...code.matchAll(binding)].map((match) => match[1] ?? match[2]))];
}

function nearestOf(name, known) {
  const text = nearest(name, known, "");
  return text.startsWith("did you mean") ? [name, text] : null;
}

/** Returns the names of all server modules. */
function servers() {
  return readdirSync(SERVERS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}

/** Returns the server module that `name` means, or undefined. */
export function serverNamed(name) {
  return servers().find((server) => plain(server) === plain(name));
}

function plain(name) {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Returns `[server, function]` pairs that `name` may mean, in any spelling and with any usual prefix. */
function toolsNamed(name) {
  const parts = name.split(/__|[.:/]/).filter((part) => part && !/^(?:mcp|functions|tools)$/.test(part));
  const wanted = new Set([plain(name), plain(parts.at(-1) ?? "")]);
  wanted.delete("");
  const server = parts.length > 1 ? serverNamed(parts[0]) : undefined;
  const found = [];
  for (const each of server ? [server] : servers()) {
    const match = exportsOf(`${SERVERS}/${each}/index.js`)
      .filter((name) => name !== "ToolError" && name !== "problem")
      .find((name) => wanted.has(plain(name)) || wanted.has(plain(each + name)));
    if (match) found.push([each, match]);
  }
  return found;
}

function importOf([[server, name], ...more]) {
  const others = more.length
    ? ` (or from ${more.slice(0, 3).map(([each]) => `./servers/${each}/index.js`).join(", ")})`
    : "";
  return `write \`import { ${name} } from "./servers/${server}/index.js"\`${others} and \`await ${name}({ … })\``;
}

/** Returns an example call of a tool, of one that the code names if possible. */
export function example(code) {
  for (const [name] of code.matchAll(/[A-Za-z_][\w]*/g)) {
    const found = name.length > 3 && !CALLERS.test(name) && !PRODUCTS.test(name) ? toolsNamed(name) : [];
    if (found.length) return importOf(found);
  }
  const known = servers();
  if (!known.length) return "no server is configured";
  return `\`import { someFunction } from "./servers/<server>/index.js"\`; the servers are: ` +
    `${known.slice(0, 10).join(", ")}`;
}

/** `import { ecko } from "./servers/demo/index.js"` */
function wrongExport(thrown, message, code) {
  const [, specifier, name] = /requested module '(.+)' does not provide an export named '(.+)'/.exec(message) ?? [];
  if (!name) return "";
  if (name === "default" && specifier.startsWith("./servers/")) {
    return `there is no default export: write \`import * as x from "${specifier}"\``;
  }
  if (specifier.startsWith("./client/") && /^[A-Z]/.test(name)) {
    return `there is no client to make: tools are called through the wrappers: ${example(code)}`;
  }
  if (isType(name, specifier)) return `${name} is a type: write \`import type { ${name} }\`, or leave it out`;
  if (/^[A-Z]/.test(name) && nearest(name, typesOf(specifier), "")) {
    return `types are imported with \`import type { … }\`; ${nearest(name, typesOf(specifier), "")}`;
  }
  return nearestExport(name, specifier);
}

function isType(name, specifier) {
  return typesOf(specifier).includes(name);
}

/** Returns the types that a module of the wrappers or the client declares. */
function typesOf(specifier) {
  if (!/^\.\/(?:servers|client)\//.test(specifier)) return [];
  const file = new URL(specifier.replace(/\.js$/, ".d.ts"), "file:///workspace/");
  if (!existsSync(file)) return [];
  return [...readFileSync(file, "utf8").matchAll(/\b(?:type|interface) ([\w$]+)/g)].map((match) => match[1]);
}

/** Returns the call of a wrapper with the names of its arguments, `f({ path: …, head: … })`, or "". */
export function callWithNames(name) {
  const [[server, wrapper] = []] = toolsNamed(name);
  const file = ["index", wrapper]
    .map((module) => `${SERVERS}/${server}/${module}.d.ts`)
    .find((each) => existsSync(each) && shape(each, wrapper));
  const names = file ? [...shape(file, wrapper).matchAll(/^ {2}"?([\w$-]+)"?\??:/gm)].map((match) => match[1]) : [];
  const members = names.slice(0, 4).map((each) => `${/^[\w$]+$/.test(each) ? each : JSON.stringify(each)}: …`);
  return names.length ? `${name}({ ${members.join(", ")} })` : "";
}

/** Returns the text of the type of a wrapper's arguments. */
function shape(file, wrapper) {
  const input = new RegExp(`\\b${wrapper.replaceAll("$", "\\$")}Input (?:= )?\\{([\\s\\S]*?)\\n\\}`, "i");
  return input.exec(readFileSync(file, "utf8"))?.[1];
}

/**
 * `demo.ecko(…)` after `import * as demo from "./servers/demo/index.js"`, or after
 * `demo = await import(…)`; `ecko(…)` after `({ ecko } = await import(…))`
 */
function wrongFunction(thrown, message, code) {
  const [, alias, name] = /^(?:\(intermediate value\)|(\w+))\.([\w-]+) is not a function/.exec(message) ??
    /^()(\w+) is not a function/.exec(message) ?? [];
  if (!name) return "";
  const imports = alias
    ? [`import\\s*\\*\\s*as\\s+${alias}\\s+from\\s*`, `\\b${alias}\\s*=\\s*await\\s+import\\(\\s*`]
    : [`\\{[^{}]*\\b${name}\\b[^{}]*\\}\\s*=\\s*await\\s+import\\(\\s*`];
  for (const each of imports) {
    const [, specifier] = new RegExp(`${each}["']([^"']+)["']`).exec(code) ?? [];
    if (!specifier) continue;
    return CALLERS.test(name) && specifier.startsWith("./servers/")
      ? `tools are called as functions: ${example(code)}`
      : nearestExport(name, specifier);
  }
  return "";
}

/** `callTool("filesystem.read_file", { … })` */
function wrongCall(thrown, message, code) {
  return thrown instanceof TypeError && /^call_?tool (?:needs|has no argument) /i.test(message)
    ? `better, the wrapper: ${example(code)}`
    : "";
}

/** Returns how to import a server under a name that is nearly its own. */
export function missingServer(module) {
  if (!module || module === "index") return `${IMPORT}; the servers are: ${servers().join(", ")}`;
  if (existsSync(`${SERVERS}/${module}/index.js`)) {
    return `write \`import * as ${module} from "./servers/${module}/index.js"\``;
  }
  return nearest(module, servers(), "./servers");
}

/** Returns what a module exports, read from its text. */
function exportsOf(file) {
  const text = readFileSync(file, "utf8");
  const declared = text.matchAll(/^export\s+(?:async\s+)?(?:function|const|class)\s+([\w$]+)/gm);
  const names = [...declared].map((match) => match[1]);
  for (const [, list] of text.matchAll(/^export\s*\{([^}]*)\}/gm)) {
    names.push(...list.split(",").map((item) => item.trim().split(/\s+as\s+/).at(-1)).filter(Boolean));
  }
  return names;
}

/** Suggests the exports of a wrapper's module, or explains why its server is missing. */
function nearestExport(name, specifier) {
  if (!specifier.startsWith("./servers/") && !specifier.startsWith("./client/")) return "";
  const file = new URL(specifier, "file:///workspace/");
  const [, problem] = /^export const problem = (".*");$/m.exec(readFileSync(file, "utf8")) ?? [];
  if (problem) return JSON.parse(problem);
  return nearest(name, exportsOf(file), specifier);
}

function nearest(name, known, place) {
  const spelt = known.filter((candidate) => candidate !== name && plain(candidate) === plain(name));
  const close = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => candidate !== name && distance <= Math.max(2, name.length / 3))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
  if (spelt.length || close.length) return `did you mean ${(spelt.length ? spelt : close).join(" or ")}?`;
  if (!known.length || !place) return "";
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

export const ADVISERS = [undefinedName, wrongExport, wrongFunction, wrongCall];
