// Turns the text of a program into the texts that may be what it means, each an ES
// module. Node's own parsers decide: nothing here takes code apart by itself.

const module = process.getBuiltinModule("node:module");

// The name of the function that is added to a program's module and returns its variable `result`, if it has one. No
// statement can continue with `export`, so the longer text parses if and only if the program does.
const RESULT_READER = "$airlockResult";
const SUFFIX = `\nexport const ${RESULT_READER} = () => result;\n`;

const FENCE = /^\s*(?:```|~~~)[ \t]*[\w+#.-]*[ \t]*\r?\n/;
const CLOSING_FENCE = /\r?\n[ \t]*(?:```|~~~)\s*$/;

// `name<Type>(…)`: JavaScript reads two comparisons where TypeScript reads a call.
const TYPED_CALL = /[\w$]<[\w$\s,.[\]{}|:;'"?]*>\(/;

// Matches the text before the first statement that is not an import.
const IMPORTS = new RegExp(
  String.raw`(?:\s|//[^\n]*(?:\n|$)|/\*[\s\S]*?\*/` +
    String.raw`|import\s+(?:[\w$*{}\s,]+?\s+from\s*|\{[\w$\s,]*\}\s*from\s*)?` +
    String.raw`(?:"[^"\n]*"|'[^'\n]*')[ \t]*(?:;|(?=[\r\n]|$)))*`,
  "y",
);

/** Takes a program out of its Markdown fence; every line keeps its number. */
export function withoutFence(code) {
  if (!FENCE.test(code)) return code;
  return code.replace(FENCE, (line) => line.replace(/[^\n]/g, "")).replace(CLOSING_FENCE, "\n");
}

/** Returns the program as a module that also exports how to read its `result`. */
export function withResult(code) {
  return code + SUFFIX;
}

/** Returns the value of the variable `result` of a module made by `withResult`, or undefined. */
export function resultVariable(namespace) {
  const value = namespace?.[RESULT_READER]?.() ?? namespace?.result; // `export { x as result }`
  return typeof value === "function" ? undefined : value;
}

/** Reports whether the program has to be read as TypeScript although it parses as JavaScript. */
export function isTyped(code) {
  return TYPED_CALL.test(code);
}

/**
 * Returns the program without its TypeScript types, every line and column in its
 * place. Throws what Node throws for what is no TypeScript, and for what types
 * cannot be stripped from (enums); returns `code` itself if it has none.
 */
export function withoutTypes(code) {
  if (!module.stripTypeScriptTypes) return code; // before Node 22.13
  const { emitWarning } = process;
  process.emitWarning = () => {}; // that the function is experimental
  try {
    return module.stripTypeScriptTypes(code);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Returns a module in which the statements of the program are the body of a
 * function, so that it may return its result.
 */
export function asFunction(code) {
  IMPORTS.lastIndex = 0;
  const end = IMPORTS.exec(code)[0].length;
  return `${code.slice(0, end)}export default await (async () => {${code.slice(end)}\n})();\n`;
}
