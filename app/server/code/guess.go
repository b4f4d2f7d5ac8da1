package code

import (
	"cmp"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/program"
)

// languageOf returns the language of a program: the one of its Markdown fence, else the one
// that the caller states, else the one that its text implies. It returns "" if the language is
// unknown.
func languageOf(said, code string) string {
	if known := cmp.Or(fenced(code), said); known != "" {
		return known
	}
	return guessed(code[:min(len(code), maxGuessed)])
}

// maxGuessed bounds the code that is searched for signs of its language, in bytes.
const maxGuessed = 64 << 10

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

// Patterns of code that is valid in only one of the two languages.
var (
	ofNode = lazyregexp.New(
		`(?m)^\s*(?:const|let|var)\s+[\w$\[{]|^\s*import\b[^\n]*\bfrom\s+["']|^\s*export\s+(?:default|const|async|` +
			`function)\b|=>|\bfunction\s*\*?\s*\w*\s*\(|===|!==|\bconsole\.\w+\(|\bglobalThis\b|\bawait\s+import\(|` +
			`\bnew\s+[A-Z]\w*\(|\brequire\(["']|^\s*//|&&|\|\||\bprocess\.(?:std|exit|argv|env)`)
	ofPython = lazyregexp.New(
		`(?m)^\s*from\s+[\w.]+\s+import\b|^\s*import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*\w+)*\s*(?:$|;|#)` +
			`|^\s*(?:async\s+)?def\s+\w+\s*\(|^\s*(?:if|for|while|with|class|elif|try|else|except|async\s+for|` +
			`async\s+with)\b[^\n{]*:\s*(?:$|#)|\bprint\(|\b(?:None|True|False|elif|lambda)\b|^\s*#|\bf["']|\b(?:len|` +
			`str|range|dict|enumerate|sorted)\(|^\w+(?:\[[^\]]*\])?\s*[-+*]?=\s*[^=>;]+$|\bnot\s+in\b`)
	inQuotes = lazyregexp.New(`(?s)""".*?"""|'''.*?'''|` + "`[^`]*`" + `|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
)

// guessed returns the language of a program if it matches the pattern of one language and not
// that of the other, else "". Quoted text is ignored.
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

// hintForLanguage returns a hint for a language that Airlock does not run.
func hintForLanguage(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "bash", "sh", "shell", "zsh", "console", "terminal":
		return `write Python: import subprocess and result = subprocess.run("…", shell=True, capture_output=True, ` +
			`text=True).stdout`
	}
	return ""
}
