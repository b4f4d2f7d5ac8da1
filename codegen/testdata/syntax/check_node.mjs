// Checks that generated JavaScript and TypeScript hold nothing but what their
// templates put there.
//
// Reads one JSON object a line, from path to source text, and answers each with
// a line: empty, or what is wrong. Paths tell which template a file is from.
// The TypeScript compiler is found through the first argument.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const ts = createRequire(import.meta.url)(process.argv[2]);
const K = ts.SyntaxKind;

const IMPORT_TYPE = 'import type { ToolResult } from "../../client/mcp_client.js";';
const SHARED = 'export { ToolError } from "../../client/mcp_client.js";';
const IMPORT_INVOKE = 'import { invoke as $invoke } from "../../client/mcp_client.js";';

const KEYWORD_TYPES = new Set([
  K.AnyKeyword, K.UnknownKeyword, K.NeverKeyword, K.BooleanKeyword, K.NumberKeyword, K.StringKeyword,
]);
const COMPOSITE_TYPES = new Set([
  K.ArrayType, K.TupleType, K.OptionalType, K.RestType, K.UnionType, K.ParenthesizedType, K.TypeLiteral,
]);

function check(path, source) {
  for (const character of source) {
    if (character !== "\n" && !/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(character)) {
      throw new Error(`the invisible character ${character.codePointAt(0).toString(16)}`);
    }
  }
  const file = ts.createSourceFile(path, source, { languageVersion: ts.ScriptTarget.Latest, jsDocParsingMode: ts.JSDocParsingMode.ParseAll }, true);
  expect(file.parseDiagnostics.length === 0, file, `does not parse: ${file.parseDiagnostics[0]?.messageText}`);
  expect(!file.commentDirectives && !file.checkJsDirective, file, "a comment that directs the compiler");
  expect(file.referencedFiles.length + file.typeReferenceDirectives.length + file.libReferenceDirectives.length === 0, file, "a reference");
  expect(file.pragmas.size === 0, file, "a pragma");
  noTags(file);
  template(path)(file);
}

function template(path) {
  if (path.endsWith("/index.js")) return indexCode;
  if (path.endsWith("/index.d.ts")) return indexTypes;
  if (path.endsWith(".d.ts")) return wrapperTypes;
  return wrapperCode;
}

function expect(condition, node, what) {
  if (!condition) throw new Error(`${what}: ${node.getText().slice(0, 300)}`);
}

function noTags(node) {
  for (const doc of node.jsDoc ?? []) {
    expect(!doc.tags?.length, node, "a JSDoc tag");
    expect(doc.comment === undefined || typeof doc.comment === "string", node, "a JSDoc link");
  }
  ts.forEachChild(node, noTags);
}

function wrapperCode(file) {
  expect(file.statements.length === 1, file, "more statements");
  expect(/^export \{ \w+ \} from "\.\/index\.js";$/.test(file.statements[0].getText()), file, "another export");
}

function indexCode(file) {
  const statements = withoutShared(file);
  if (statements[0].kind === K.VariableStatement) return missingCode(statements);
  const [first, second, ...rest] = statements;
  expect(first.getText() === IMPORT_INVOKE, first, "another import");
  constant(second, "$server", "const ");
  for (const node of rest) {
    if (node.kind === K.FunctionDeclaration) wrapperFunction(node);
    else expect(/^export \{ \w+ as \w+ \};$/.test(node.getText()), node, "another statement");
  }
}

function constant(node, name, prefix) {
  const [declaration] = node.declarationList.declarations;
  expect(node.getText().startsWith(`${prefix}${name} = "`), node, "another constant");
  expect(declaration.initializer.kind === K.StringLiteral && node.declarationList.declarations.length === 1, node, "another value");
}

function wrapperFunction(node) {
  const name = node.name.text;
  const [statement] = node.body.statements;
  expect(node.body.statements.length === 1 && statement.kind === K.ReturnStatement, node, "another body");
  const call = statement.expression;
  const given = call.arguments.map((argument) => argument.getText());
  expect(call.expression.getText() === "$invoke" && given.length === 4, call, "another call");
  expect(given[0] === "$server" && call.arguments[1].kind === K.StringLiteral && given[2] === "args", call, "other arguments");
  expect(given[3] === JSON.stringify(name), call, "another name");
  expect(new RegExp(`^export function ${name}\\(args( = \\{\\})?\\) \\{`).test(node.getText()), node, "another function");
}

function missingCode(statements) {
  const [first, second] = statements;
  constant(first, "problem", "export const ");
  expect(statements.length === 2 && second.getText().startsWith("export default new Proxy({}, {"), second, "other code");
}

/** Returns the statements but for the one that all modules have in common. */
function withoutShared(file) {
  return file.statements.filter((node) => node.getText() !== SHARED);
}

function indexTypes(file) {
  const statements = withoutShared(file);
  if (statements[0].getText() === "export declare const problem: string;") return;
  for (const node of statements) {
    expect(/^export \{( (type )?\w+( as \w+)?,?)* ?\}( from "\.\/\w+\.js")?;$/.test(node.getText()), node, "another export");
  }
}

function wrapperTypes(file) {
  const [first, ...rest] = file.statements;
  expect(first.getText() === IMPORT_TYPE, first, "another import");
  const known = new Set(rest.filter((node) => node.kind !== K.FunctionDeclaration).map((node) => node.name.text));
  const last = rest.pop();
  expect(
    /^export declare function \w+\(args\??: (\w+)\): Promise<ToolResult<\w+>>;$/.test(last.getText()),
    last, "another function",
  );
  for (const node of rest) declaration(node, known);
}

function declaration(node, known) {
  expect(node.modifiers?.length === 1 && node.modifiers[0].kind === K.ExportKeyword, node, "another modifier");
  expect(!node.typeParameters && !node.heritageClauses, node, "another declaration");
  if (node.kind === K.InterfaceDeclaration) node.members.forEach((member) => field(member, known));
  else {
    expect(node.kind === K.TypeAliasDeclaration, node, "another statement");
    type(node.type, known);
  }
}

function field(node, known) {
  if (node.kind === K.IndexSignature) {
    expect(node.parameters.length === 1 && node.parameters[0].getText() === "key: string", node, "another index");
  } else {
    expect(node.kind === K.PropertySignature && !node.modifiers, node, "another member");
    expect(node.name.kind === K.Identifier || node.name.kind === K.StringLiteral, node, "another key");
  }
  type(node.type, known);
}

function type(node, known) {
  if (KEYWORD_TYPES.has(node.kind)) return;
  if (node.kind === K.LiteralType) {
    const value = node.literal.kind === K.PrefixUnaryExpression ? node.literal.operand : node.literal;
    expect([K.StringLiteral, K.NumericLiteral, K.TrueKeyword, K.FalseKeyword, K.NullKeyword].includes(value.kind), node, "another literal");
  } else if (node.kind === K.TypeReference) {
    expect(node.typeName.kind === K.Identifier && known.has(node.typeName.text) && !node.typeArguments, node, "another name");
  } else {
    expect(COMPOSITE_TYPES.has(node.kind), node, "another type");
    ts.forEachChild(node, (child) => (child.kind === K.IndexSignature ? field(child, known) : type(child, known)));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let problem = "";
  for (const [path, source] of Object.entries(JSON.parse(line))) {
    if (!/\.(js|ts)$/.test(path)) continue;
    try {
      check(path, source);
    } catch (failure) {
      problem = `${path}: ${failure.message}`;
    }
  }
  console.log(JSON.stringify(problem));
}
