// Advice on values that calls return. The comment of each function shows the mistakes that it gives advice on. A
// function returns "" for other errors.

import { callWithNames } from "./hints_names.mjs";

const OF_ARRAYS =
  /^(?:map|filter|forEach|reduce|find|findIndex|slice|some|every|join|flatMap|sort|push|concat|includes|at|reverse)$/;
const OF_TEXTS = /^(?:split|trim|replace|replaceAll|match|toLowerCase|toUpperCase|startsWith|substring)$/;
const WRAPPERS = /["']\.\/servers\//;

/** `page.map(…)`, `page.data.map(…)`, `response.json()` */
function wrongMethod(thrown, message, code) {
  if (!(thrown instanceof TypeError)) return "";
  const [, path, name] = /^([\w$.,[\]()]+|\(intermediate value\))\.(\w+) is not a function/.exec(message) ?? [];
  if (!name) return "";
  if (name === "json" || name === "text") {
    return "a wrapper returns no HTTP response: its plain value is in `.data`, parsed already";
  }
  if (/^\w+\.content$/.test(path)) {
    return `${path} is the list of what the tool sent: its text is in ${path}[0].text, and as a value in \`.data\``;
  }
  if (/^\w+\.data\b/.test(path) && (OF_ARRAYS.test(name) || OF_TEXTS.test(name))) {
    return `${path} is not ${OF_TEXTS.test(name) ? "a text" : "an array"}: it is the value that the tool returned; ` +
      `look at it first, as in console.log(${path})`;
  }
  const meant = [...Object.getOwnPropertyNames(Array.prototype), ...Object.getOwnPropertyNames(String.prototype)].find(
    (known) => known !== name && known.toLowerCase() === name.toLowerCase().replace(/_/g, ""),
  );
  if (meant) return `did you mean ${meant}?`;
  if (!OF_ARRAYS.test(name) && !OF_TEXTS.test(name)) return "";
  return "if it came from a wrapper, it is a ToolResult: its plain value is in `.data`";
}

/** `page.items.map(…)`, `for (const row of page)`, `const [row] = page` */
function noData(thrown, message, code) {
  if (!(thrown instanceof TypeError)) return "";
  if (/^object is not iterable/.test(message) && /\bPromise\.\w+\(/.test(code)) {
    return "Promise.all takes an array: Object.values(x) makes one of an object";
  }
  if (!WRAPPERS.test(code) && /is not iterable$/.test(message)) {
    return "an object is looped over with Object.entries(x)";
  }
  if (/^Cannot set properties of undefined \(setting 'result'\)/.test(message)) {
    return "`this` is nothing in a module: write `globalThis.result = …`";
  }
  if (!WRAPPERS.test(code)) return "";
  const [, name] = /^(?:Cannot read properties of undefined \(reading '(\w+)'\))/.exec(message) ?? [];
  if (name) {
    return /\.data\b/.test(code)
      ? "the object has no such member: look at what the tool returned, as in console.log(JSON.stringify(r.data))"
      : "a wrapper returns a ToolResult: its plain value is in `.data`, as in `r.data.items`; " +
        "console.log(JSON.stringify(r.data)) shows it";
  }
  const [, data] = /^(\w+\.data[\w.]*) is not iterable/.exec(message) ?? [];
  if (data) {
    return `${data} is not an array: it is the value that the tool returned; an object is looped over with ` +
      `Object.entries(${data})`;
  }
  if (/is not iterable|not a function or its return value is not iterable/.test(message)) {
    return "if it came from a wrapper, its plain value is in `.data`; an object is looped over with Object.entries(x)";
  }
  return "";
}

function toolError(thrown, message) {
  if (thrown?.name !== "ToolError") return "";
  if (thrown.type !== "ValidationError") return "";
  const [, wrapper] = /^(\S+) takes one object of arguments/.exec(message) ?? [];
  const call = wrapper && callWithNames(wrapper);
  if (call) return `write \`await ${call}\``;
  if (/null/.test(message)) return "leave an argument out in place of null";
  return "";
}

/** `JSON.parse` of a Python literal: single quotes, None, True, False */
function notJSON(thrown, message) {
  const isLiteral = /^Unexpected token '[NTF']'.* is not valid JSON$|^Expected property name or '}' in JSON/s;
  if (!(thrown instanceof SyntaxError) || !isLiteral.test(message)) return "";
  return "it looks like a Python literal, not JSON: a Python program reads it with ast.literal_eval";
}

function constant(thrown, message) {
  return thrown instanceof TypeError && message === "Assignment to constant variable." ? "declare it with `let`" : "";
}

/** A line that begins with a bracket and continues the line before: `const a = 1\n(async () => …)()` */
function semicolon(thrown, message, code) {
  const value = /^(?:[\d"'`{[]|\(intermediate value\)|.*\)) ?.*is not a function$/.test(message);
  return thrown instanceof TypeError && value && /[\w$)\]"'`}][ \t]*\n\s*[([`]/.test(code)
    ? "end the line before the parenthesis or bracket with a semicolon"
    : "";
}

export const ADVISERS = [toolError, notJSON, constant, wrongMethod, noData, semicolon];
