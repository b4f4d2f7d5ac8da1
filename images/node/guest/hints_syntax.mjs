// Advice on code that does not parse: most of it is another language, or text around
// the code.

import { spawnSync } from "node:child_process";
import { FILE } from "./file.mjs";
import { example } from "./hints_names.mjs";

const PYTHON = new RegExp(
  String.raw`^\s*(?:def \w+\(.*\).*:|from [\w.]+ import |import \w+(?:\s+as\s+\w+)?\s*$|elif .*:|print\(.*\)\s*$` +
    String.raw`|class \w+.*:\s*$|async def |for \w+ in .*:\s*$|if .*:\s*$|#(?!!))`,
  "m",
);
const ESCAPED = /&(?:lt|gt|amp|quot|apos|#39|#x27);/;
const TYPESCRIPT = [
  [/type assertions/, "write `x as T` for `<T>x`"],
  [/import equals/, 'write `import x from "…"`'],
  [/export assignment/, "write `export default …`"],
];
const PYTHONS_WORDS = { and: "&&", or: "||", not: "!", elif: "else if" };
const PROSE = /^\s*(?:Here(?:'s| is| you| are)|This |Sure|I |The |Below|Let me|Certainly|Note:|To )/;

/**
 * Returns the line that a syntax error of the code is in, as Node shows it, or "".
 * The error itself has no position; `node --check` prints it.
 */
export function syntaxLocation(thrown) {
  if (!(thrown instanceof SyntaxError) || /^\s+at .*agent_code\.mjs/m.test(thrown.stack)) return "";
  const check = spawnSync(process.execPath, ["--check", FILE], { encoding: "utf8", timeout: 5000 });
  const shown = check.stderr?.split("\nSyntaxError")[0];
  return check.status ? `${shown.trimEnd()}\n` : "";
}

function notParsed(thrown, message, code) {
  if (!(thrown instanceof SyntaxError)) return "";
  if (thrown.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") {
    const [, instead] = TYPESCRIPT.find(([form]) => form.test(message)) ?? [];
    return instead ??
      "only types are stripped from TypeScript: write `const A = { … } as const` for an enum, fields in place of " +
        "parameter properties, and no namespaces";
  }
  if (/is not valid JSON/.test(message)) return notJSON(message);
  if (/^\s+at .*agent_code\.mjs/m.test(thrown.stack) || /does not provide an export/.test(message)) return "";
  if (/[“”‘’]/.test(code) && /Invalid or unexpected token/.test(message)) return "write plain quotes: \" and '";
  const packed = wrapped(code);
  if (packed) return packed;
  if (/[\u00a0\u200b-\u200d\u2060\ufeff]/.test(code) && /Invalid or unexpected token/.test(message)) {
    return "remove the invisible characters";
  }
  if (ESCAPED.test(code) && /Unexpected token '[&;]'|Invalid or unexpected token/.test(message)) {
    return "the code is escaped for HTML: send <, >, & and quotes as they are";
  }
  const copy = copied(code);
  if (copy) return copy;
  if (code.includes("\0")) return "remove the NUL characters";
  const [, hyphened] = /\bimport\s*\{[^{}]*?\b(\w+(?:-\w+)+)/.exec(code) ?? [];
  if (hyphened) {
    return `a name in code has no hyphen: write ${hyphened.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())}`;
  }
  if (/(?:^|[{;}])\s*@\w+/m.test(code) && /Invalid or unexpected token/.test(message)) {
    return "Node has no decorators: call the function yourself";
  }
  if (/\baccessor\s+[\w#]/.test(code)) return "Node has no `accessor`: write a getter and a setter, or a field";
  if (/^\s*(?:```|~~~)/m.test(code) && !PROSE.test(code)) return "send one program, without Markdown between its parts";
  if (/Unexpected token '\.\.\.'/.test(message)) return "replace the three dots by the code that they stand for";
  if (/^\s*(?:```|~~~)/m.test(code) && PROSE.test(code)) {
    return "send the code alone, without Markdown and text around it";
  }
  if (PROSE.test(code)) return "send the code alone, without text around it";
  if (PYTHON.test(code) && !/^\s*(?:const|let|var|function|import .* from)\b/m.test(code)) {
    return 'this looks like Python, and the language of the run is JavaScript: ask for the language "python", or ' +
      'write JavaScript';
  }
  const [, word] = /Unexpected identifier '(and|or|not|elif)'/.exec(message) ?? [];
  if (word) return `this is JavaScript: write \`${PYTHONS_WORDS[word]}\` for \`${word}\``;
  if (/Unexpected string/.test(message) && /(?<![\w$])f["']/.test(code)) {
    return "write the text between backticks, with a $ before each brace and without the f";
  }
  if (/Illegal return/.test(message)) return "write `globalThis.result = …` in place of `return`";
  const isReserved = /Unexpected reserved word/.test(message) && /\bawait\b/.test(code);
  if (isReserved || /await is only valid in async functions/.test(message)) {
    return "make the function `async`, and await its call";
  }
  if (/Unexpected token '<'/.test(message)) {
    return "neither JSX nor HTML runs here: put markup into a text, and placeholders in angle brackets replace by " +
      "what they stand for";
  }
  if (/\bassert\s*\{\s*type\s*:/.test(code)) return "write `with { type: \"json\" }`";
  const isEnd =
    /Unexpected end of input|missing \) after argument list|Unexpected (?:token 'export'|identifier 'globalThis')/;
  if (isEnd.test(message) && closes(code)) return closes(code);
  if (/Unexpected identifier '\w+'|missing \) after/.test(message) && /'[^'\n]*\w'\w[^'\n]*'/.test(code)) {
    return "a quote inside the text ends it: put the text into double quotes or backticks";
  }
  const isImport = /Cannot use import statement|import declarations? may only|Unexpected (?:identifier|token '[{*]')/;
  if (isImport.test(message) && /^\s+import\b/m.test(code)) {
    return "`import` stands at the top of the code; inside of a function write `await import(…)`";
  }
  return "";
}

/** Says which brackets the code leaves open, or "". */
function closes(code) {
  const count = (mark) => code.split(mark).length;
  const open = ["{}", "()", "[]"].filter(([opening, closing]) => count(opening) > count(closing));
  return open.length
    ? `the code ends too early: it opens more ${open.map(([opening]) => opening).join(" and ")} than it closes`
    : "";
}

/** Reports whether the code is nothing but a JSON object or array. */
function isJSON(code) {
  try {
    return typeof JSON.parse(code) === "object";
  } catch {
    return false;
  }
}

/** Code with marks of its origin: a diff, a listing, a database's prompt. */
function copied(code) {
  const lines = code.split("\n").filter((line) => line.trim());
  if (lines.every((line) => /^\s*\d+(?:[ \t]*[|:)]|[ \t]+|$)/.test(line))) {
    return "send the statements alone, without the numbers of the lines";
  }
  if (lines.every((line) => /^[-+ @\\]/.test(line)) && lines.some((line) => line.startsWith("+"))) {
    return "send the program itself, without the marks of a diff";
  }
  return /^\s*(?:SELECT\b.*\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b/i.test(code)
    ? "this is SQL, not JavaScript: hand it to a tool as a text"
    : "";
}

/** Code that came inside something else, or with its line breaks escaped. */
function wrapped(code) {
  if (/^\s*<\/?[a-z_][^<>]*>/i.test(code)) return "send the code alone, without tags around it";
  if (/^\s*\{\s*"(?:code|language|program)"\s*:/.test(code)) {
    return 'send the code alone: the value of "code", not the object';
  }
  const hasName = /"(?:name|tool|toolName|tool_name|function)"\s*:/.test(code);
  if (hasName && isJSON(code) && /"(?:arguments|args|parameters|params|input)"\s*:/.test(code)) {
    return `this is the description of a call, not a program: ${example(code)}`;
  }
  if (isJSON(code)) return "this is JSON, not a program: write `globalThis.result = …` before it";
  return !code.trim().includes("\n") && /[^\\]\\n/.test(code)
    ? "the lines end in the two characters \\ and n: send line breaks"
    : "";
}

function notJSON(message) {
  return /\[object Object\]/.test(message)
    ? "it is an object already, not JSON text: use it as it is; `.data` of a wrapper's result is the plain value"
    : "the text is not JSON: look at it first";
}

export const ADVISERS = [notParsed];
