// Explains why a successful program has probably left no result. The explanation
// is a guess from the text: it changes nothing.

/** The explanation for an undefined result. */
export const NOTHING = "the result is undefined, as a member is that does not exist: look at what it is taken from, " +
  "or write null where nothing is meant";

/** Returns one sentence on code that set no result; `settled` reports whether its module ran to its end. */
export function note(code, settled) {
  try {
    if (!settled && /\bprocess\.exit\b/.test(code)) {
      return "process.exit ended the program before its result was known: leave it out, or write `globalThis.result " +
        "= …` before it";
    }
    const text = withoutComments(code);
    for (const guess of GUESSES) {
      const sentence = guess(text);
      if (sentence) return sentence;
    }
  } catch {
    // If the code has broken the globals, the plain sentence is used.
  }
  const where = /\bconsole\.|\bstdout\b/.test(code) ? "where you print it" : "at the end";
  return `the code has not set its result: write \`globalThis.result = …\` or \`export default …\` ${where}`;
}

function withoutComments(code) {
  return code.replace(/^[ \t]*\/\/.*$/gm, "").replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, "");
}

/** The program as one text in quotes */
function quotedProgram(code) {
  return /^\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)[\s;]*$/.test(code)
    ? "the code is one text: send the program without quotes around it"
    : "";
}

/** `async () => { … }` as the whole program */
function uncalledProgram(code) {
  const open = /^[\s;]*\(?\s*async\s*(?:function\s*\*?\s*)?\([^)]*\)\s*(?:=>)?\s*\{/.test(code);
  return open && !/\}\s*\)?\s*\([^()]*\)\s*;?\s*$/.test(code)
    ? "the code is a function that is never called: put `export default` before it, or write its statements at the " +
      "top level"
    : "";
}

/** `async function main() { … }` and no `main()` */
function uncalledFunction(code) {
  const made = [
    ...code.matchAll(/(?:^|[\n;}])\s*(?:export\s+)?(?:async\s+)?function\s*\*?\s*([\w$]+)/g),
    ...code.matchAll(
      /(?:const|let|var)\s+([\w$]+)\s*(?::[^=\n]+)?=\s*(?:async\b|\([^()\n]*\)\s*(?::[^=\n]+)?=>)/g,
    ),
  ].sort((a, b) => a.index - b.index);
  const names = made.map((match) => match[1]);
  const uncalled = names.filter((name) => code.split(new RegExp(`(?<![\\w$])${literal(name)}(?![\\w$])`)).length === 2);
  const program = uncalled.find((each) => /^(?:main|run|execute|start|handler|solve|program)$/i.test(each));
  const name = program ?? uncalled.at(-1);
  return name ? `${name}() is never called: end with \`globalThis.result = await ${name}()\`` : "";
}

/** `(async () => { … return rows; })();` */
function droppedReturn(code) {
  const called = /\}\s*\)?\s*\(\s*\)\s*\)?\s*;?\s*$/.test(code);
  return called && /^\s*\(\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*=>)/m.test(code) && /\breturn\b/.test(code)
    ? "what the function returns is dropped: write `globalThis.result = await ` before the parenthesis that it " +
      "begins with"
    : "";
}

/** `const result = …` inside a function */
function localResult(code) {
  if (/^(?:export\s+)?(?:const|let|var)\s+result\s*[=:]/m.test(code)) return NOTHING;
  const [, name] = /(?:^|[{;])[ \t]*(?:const|let|var)\s+(result)\b/m.exec(code) ?? [];
  return name
    ? "`result` is a variable inside a function or block, not the run's result: write `globalThis.result = …`, or " +
      "return it and write `globalThis.result = await main()`"
    : "";
}

/** `await main();` as the last line, or a value such as `rows;` */
function droppedValue(code) {
  const last = code.trim().split("\n").at(-1).trim();
  const isCall = /^(?:await\s+)?[\w$.]+\([^;]*\)(?:\.(?:then|catch|finally)\(.*\))?;?$/.test(last);
  if (isCall && !/^console\.|^process\./.test(last)) {
    const call = last.replace(/;$/, "").replace(/^await\s+/, "").replace(/\.(?:then|catch|finally)\(.*$/, "");
    return `the value of the last line is dropped: write \`globalThis.result = await ` +
      `${call.length > 60 ? "…" : call}\``;
  }
  const [, value] = /^\(?([\w$.[\]]+|\{.*\}|\[.*\])\)?;?$/.exec(last) ?? [];
  return value && !/^[\])}]/.test(value)
    ? `the value of the last line is not the result: write \`globalThis.result = ${value.slice(0, 60)}\``
    : "";
}

/** `const output = …` or `console.log(output)` as the last statement */
function otherVariable(code) {
  const last = code.split("\n").findLast((line) => /^[^\s})\]]/.test(line)) ?? "";
  const [, made] = /^(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=/.exec(last) ?? [];
  const [, printed] = /^console\.\w+\(([\w$]+)\);?\s*$/.exec(last) ?? [];
  const name = made ?? printed;
  return name && name !== "result"
    ? `the code has not set its result: write \`globalThis.result = ${name}\` at the end`
    : "";
}

const GUESSES = [
  quotedProgram, uncalledProgram, uncalledFunction, droppedReturn, localResult, droppedValue, otherVariable,
];

function literal(name) {
  return name.replaceAll("$", "\\$");
}
