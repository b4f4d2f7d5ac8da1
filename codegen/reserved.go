package codegen

// pythonReserved are Python's keywords (Language Reference, 2.3.1, as of 3.14),
// sorted.
var pythonReserved = []string{
	"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
	"continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
	"if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
	"try", "while", "with", "yield",
}

// nodeReserved are the words that cannot name a function of an ES module
// (ECMA-262, 12.7.2, strict mode), the global names that TypeScript refuses to
// declare again, and "then": a module that exported it would be taken for a
// promise by await import(). Sorted.
var nodeReserved = []string{
	"Infinity", "NaN", "arguments", "await", "break", "case", "catch", "class", "const",
	"continue", "debugger", "default", "delete", "do", "else", "enum", "eval", "export",
	"extends", "false", "finally", "for", "function", "globalThis", "if", "implements",
	"import", "in", "instanceof", "interface", "let", "new", "null", "package", "private",
	"protected", "public", "return", "static", "super", "switch", "then", "this", "throw",
	"true", "try", "typeof", "undefined", "var", "void", "while", "with", "yield",
}
