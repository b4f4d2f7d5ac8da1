package code

import (
	"cmp"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/program"
)

// languageOf returns the language that a program is in: what its Markdown fence says,
// else what the caller says, else what its text can only be. It returns "" where none
// of that is known.
func languageOf(said, code string) string {
	return cmp.Or(fenced(code), said, guessed(code))
}

var fence = lazyregexp.New("^\\s*(?:```+|~~~+)[ \\t]*([\\w.+#-]+)[^\\n]*\\n")

// fenced returns the language that a fence at the beginning of a program names, or "".
func fenced(code string) string {
	match := fence.FindStringSubmatch(code)
	if match == nil {
		return ""
	}
	name, _ := program.ParseLanguage(match[1])
	return name
}

// What only one of the two languages has.
var (
	ofNode = lazyregexp.New(`(?m)^\s*(?:const|let|var)\s+[\w$\[{]|^\s*import\b[^\n]*\bfrom\s+["']|^\s*export\s+(?:default|const|async|function)\b` +
		`|=>|\bfunction\s*\*?\s*\w*\s*\(|===|!==|\bconsole\.\w+\(|\bglobalThis\b|\bawait\s+import\(|\bnew\s+[A-Z]\w*\(|\brequire\(["']|^\s*//|&&|\|\||\bprocess\.(?:std|exit|argv|env)`)
	ofPython = lazyregexp.New(`(?m)^\s*from\s+[\w.]+\s+import\b|^\s*import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*\w+)*\s*(?:$|;|#)` +
		`|^\s*(?:async\s+)?def\s+\w+\s*\(|^\s*(?:if|for|while|with|class|elif|try|else|except|async\s+for|async\s+with)\b[^\n{]*:\s*(?:$|#)|\bprint\(` +
		`|\b(?:None|True|False|elif|lambda)\b|^\s*#|\bf["']|\b(?:len|str|range|dict|enumerate|sorted)\(|^\w+(?:\[[^\]]*\])?\s*[-+*]?=\s*[^=>;]+$|\bnot\s+in\b`)
	inQuotes = lazyregexp.New(`(?s)""".*?"""|'''.*?'''|` + "`[^`]*`" + `|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
)

// guessed returns the only language that a program can be in, or "": it has something
// of one and nothing of the other. What stands in quotes says nothing.
func guessed(code string) string {
	code = strings.Trim(strings.TrimSpace(code), "`~") // of a fence that names no language
	bare := inQuotes.ReplaceAllStringFunc(code, func(text string) string { return text[:1] + text[len(text)-1:] })
	node, python := ofNode.MatchString(bare), ofPython.MatchString(bare)
	switch {
	case node && !python:
		return "node"
	case python && !node:
		return "python"
	}
	return ""
}

// hintForLanguage says what to do about a language that does not run here.
func hintForLanguage(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "bash", "sh", "shell", "zsh", "console", "terminal":
		return `write Python: import subprocess and result = subprocess.run("…", shell=True, capture_output=True, text=True).stdout`
	}
	return ""
}
