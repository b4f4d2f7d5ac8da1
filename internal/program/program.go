// Package program knows what a program to run may be: its language, and its size.
package program

import (
	"path/filepath"
	"strings"
)

// MaxSize is the largest program in bytes. With JSON escapes it still fits one
// frame of the socket of a sandbox.
const MaxSize = 2 << 20

// ParseLanguage returns the name of the image that runs a language, "python" or "node",
// for the usual names of the language ("javascript", "ts", "py"); it reports whether
// it is known. TypeScript runs on Node, which strips its types.
func ParseLanguage(name string) (image string, known bool) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "python", "python3", "py", "python-3":
		return "python", true
	case "node", "nodejs", "node.js", "javascript", "js", "mjs", "cjs", "ecmascript", "jsx", "typescript", "ts", "mts",
		"cts", "tsx":
		return "node", true
	}
	return "", false
}

// LanguageOf returns the language of a program, as ParseLanguage does: the named one, or
// the one of its file's extension, or Python.
func LanguageOf(named, file string) string {
	if named == "" {
		named = strings.TrimPrefix(filepath.Ext(file), ".")
	}
	if language, known := ParseLanguage(named); known {
		return language
	}
	return "python"
}
