// Advice on files, packages, the network and whatever else of home is not in here.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { isDiskFull } from "./failure.mjs";
import { example, missingServer, PRODUCTS, serverNamed } from "./hints_names.mjs";

const ONLY = `only Node's own modules${installed()} and the wrappers in ./servers are installed`;
const SESSION = "/workspace/session";
const NO_NETWORK = "the sandbox has no network: call tools through the wrappers in ./servers";
const OTHER_HOST = "the run reaches only the hosts in its network list that policy permits";
const NETWORK = new RegExp(
  "^(?:axios|node-fetch|got|superagent|undici|ky|request|ws|openai|@anthropic-ai/.*" +
    "|puppeteer|playwright|cheerio|pg|mysql2?|redis)$",
);
const INSTEAD = {
  lodash: "use the methods of arrays and objects",
  underscore: "use the methods of arrays and objects",
  moment: "use Date and Intl",
  dayjs: "use Date and Intl",
  "date-fns": "use Date and Intl",
  uuid: "use crypto.randomUUID()",
  dotenv: "there are no credentials in here, and none are needed: the tools hold their own",
  zod: "check values by hand",
  "p-limit": "Promise.all may start any number of calls",
};

function missingModule(thrown, message, code) {
  if (thrown?.code === "ERR_UNSUPPORTED_ESM_URL_SCHEME") return `${ONLY}, and there is no network to load others from`;
  if (!/^(?:ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|ERR_UNSUPPORTED_DIR_IMPORT)$/.test(thrown?.code)) return "";
  const [, module] =
    /(?:module|import) '\/workspace\/(?:servers|client)\/([^/']+?)(?:\.m?[jt]s)?['/]/.exec(message) ?? [];
  if (module && /\/workspace\/client\//.test(message)) {
    return 'write `import { callTool } from "./client/mcp_client.js"`';
  }
  if (module) return missingServer(module);
  if (/import '\/workspace\/servers\/?'/.test(message)) return missingServer("");
  const [, file] = /module '\/workspace\/([^']+)'/.exec(message) ?? [];
  const named = file && serverNamed(file.replace(/(?:\/index)?\.m?[jt]s$/, "").split("/").at(-1));
  if (named) return missingServer(named);
  if (file?.endsWith(".json")) return `${ofEarlierRun(file)}, or put the data into the code`;
  if (file) return `${ofEarlierRun(file)}, or write the module's code into this program`;
  const [, name] = /Cannot find (?:package|module) '([^']+)'/.exec(message) ?? [];
  if (!name) return "";
  if (/^@?servers$/.test(name) || /servers\//.test(message)) {
    return 'wrappers are imported as `import * as x from "./servers/<server>/index.js"`';
  }
  if (/^(?:@modelcontextprotocol\/|fastmcp|mcp)/.test(name) || PRODUCTS.test(name)) {
    return `tools are called through the wrappers: ${example(code)}`;
  }
  if (serverNamed(name)) return missingServer(serverNamed(name));
  if (isBuiltin(name)) return "";
  if (NETWORK.test(name)) return `${ONLY}, and there is no network: call tools through the wrappers`;
  return INSTEAD[name] ? `${ONLY}: ${INSTEAD[name]}` : ONLY;
}

const UNREACHED = [
  "ENETUNREACH", "EHOSTUNREACH", "EAI_AGAIN", "ENOTFOUND", "ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT",
  "UND_ERR_CONNECT_TIMEOUT",
];

function noNetwork(thrown) {
  const code = thrown?.code ?? thrown?.cause?.code;
  return UNREACHED.includes(code) || thrown?.message === "fetch failed" ? unreached() : "";
}

function unreached() {
  return /^\s*eth0:/m.test(readFileSync("/proc/net/dev", "latin1")) ? OTHER_HOST : NO_NETWORK;
}

/** `new WebSocket(…)`, whose error is an event */
function webSocket(thrown) {
  const isError = thrown?.constructor?.name === "ErrorEvent";
  return isError && thrown.target?.constructor?.name === "WebSocket" ? NO_NETWORK : "";
}

function program(thrown, message, code) {
  const ofNothing = /^Cannot read properties of (?:null|undefined) \(reading '(?:toString|trim|split|length)'\)/;
  if (ofNothing.test(message) && /\bspawnSync\(/.test(code)) {
    return "the program did not start: spawnSync returns why in `error`; the image has a shell, coreutils, grep, " +
      "sed, awk, find and tar";
  }
  const spawned = /^spawn(?:Sync)? (\S+) ENOENT/.exec(message) ?? /^Command failed: (.*)/.exec(message);
  if (!spawned) return "";
  if (/\b(?:npm|npx|yarn|pnpm|pip3?|apt(?:-get)?|bun)\b/.test(spawned[1])) return `nothing can be installed: ${ONLY}`;
  if (/\b(?:curl|wget|git|ssh|gh|aws|docker|psql)\b/.test(spawned[1])) return NO_NETWORK;
  return thrown.code === "ENOENT" || thrown.status === 127 || thrown.code === 127
    ? "the image has a shell, coreutils, grep, sed, awk, find and tar, and no other programs"
    : "";
}

function disk(thrown) {
  return isDiskFull(thrown) ? "the sandbox's disk is full: keep less, or work in pieces" : "";
}

/** `process.env.TOKEN.length`, `throw new Error("TOKEN is not set")`, arguments of the command line, stdin */
function environment(thrown, message, code) {
  const missing = thrown instanceof TypeError && /^Cannot read properties of undefined/.test(message);
  const read = [...code.matchAll(/\bprocess\.env(?:\.|\[["'`])(\w+)/g)].map(([, name]) => name);
  const isRead = missing && /\bprocess\.env\.\w+\.\w|\bprocess\.argv\b/.test(code);
  if (isRead || read.some((name) => message.includes(name))) {
    return "there are no environment variables, credentials and arguments in here: put values into the code; the " +
      "tools hold their own credentials";
  }
  return thrown instanceof SyntaxError && /^Unexpected end of JSON input/.test(message) && /\bstdin\b/.test(code)
    ? "stdin is empty in here: put the values into the code"
    : "";
}

function file(thrown, message, text) {
  const { code, path } = thrown ?? {};
  if (typeof path !== "string" || typeof thrown.syscall !== "string" || thrown.syscall.startsWith("spawn")) return "";
  if (code === "ENOENT") {
    if (/^(?:\/workspace\/|\.\/)?servers\//.test(path)) return "the wrappers are modules: import them";
    const isOutside = path.startsWith("/") && !/^\/(?:workspace|tmp)\b/.test(path);
    if (isOutside && /\b(?:write|append|mkdir|copy|createWriteStream)/.test(text)) {
      return "only /workspace and /tmp can be written, and only files in /workspace/session are there in the next " +
        "run: return the data, attach it with client.attach, or write it with a tool";
    }
    if (isOutside || /^(?:~|[A-Za-z]:[\\/])/.test(path)) {
      return "files of the host are not in here: read them with a tool, if a server has one, or put the data into " +
        "the code";
    }
    return `${ofEarlierRun(path)}, or make the file in this program`;
  }
  if (/^(?:EROFS|EACCES|EPERM)$/.test(code)) {
    return "only /workspace and /tmp can be written, and not the wrappers in them";
  }
  return "";
}

/** Says which files of earlier runs there are. */
function ofEarlierRun(path) {
  const kept = (existsSync(SESSION) ? readdirSync(SESSION, { recursive: true, withFileTypes: true }) : [])
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort();
  const same = kept.find((each) => each.endsWith(`/${path.split("/").at(-1)}`));
  if (same) return `it is kept as ${same}: read that`;
  const names = kept.length
    ? `: ${kept.slice(0, 10).join(", ")}${kept.length > 10 ? ", …" : ""}`
    : ", and there are none";
  return `of earlier runs, only files in /workspace/session are kept${names}; read the file with a tool`;
}

export const ADVISERS = [disk, missingModule, program, environment, file, noNetwork, webSocket];

/** The modules that the operator added to the image: ", NAME, …". */
function installed() {
  try {
    const names = readFileSync("/opt/airlock/packages.txt", "utf8").trim().split("\n");
    return `, ${names.join(", ")}`;
  } catch {
    return ""; // an image without packages
  }
}
