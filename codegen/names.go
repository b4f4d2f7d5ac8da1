package codegen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// maxToolName is the longest name a tool may have (MCP 2025-11-25, Tools, Tool Names).
const maxToolName = 128

// maxStem is the longest file name without its extension, so that the whole
// stays within 100 bytes.
const maxStem = 95

// refuseName returns one sentence on why the protocol forbids a tool's name, or "" if the
// name is valid.
func refuseName(name string) string {
	switch {
	case name == "":
		return "its name is empty"
	case len(name) > maxToolName:
		return fmt.Sprintf("its name is %d bytes long, the protocol allows %d", len(name), maxToolName)
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isASCIILetterOrDigit(rune(c)) && c != '_' && c != '-' && c != '.' {
			return "its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and ."
		}
	}
	return ""
}

// words splits a tool's name at dots, underscores and dashes, and where camel
// case begins a word: before a capital behind a small letter or digit, and
// before the last capital of a row that a small letter follows (HTTPServer is
// HTTP and Server).
func words(name string) []string {
	var out []string
	start := 0
	end := func(at int) {
		if at > start {
			out = append(out, name[start:at])
		}
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '.' || c == '_' || c == '-':
			end(i)
			start = i + 1
		case isUpper(c) && i > start && (!isUpper(name[i-1]) || i+1 < len(name) && isLower(name[i+1])):
			end(i)
			start = i
		}
	}
	end(len(name))
	return out
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// pythonName returns the Python function name of a tool. The names of two tools can
// collide; distinct makes them unique.
func pythonName(tool string) string {
	return legal(strings.ToLower(strings.Join(words(tool), "_")), pythonReserved)
}

// nodeName returns the JavaScript function of a tool, likewise.
func nodeName(tool string) string {
	name := pascal(words(tool))
	if name != "" && isUpper(name[0]) {
		name = strings.ToLower(name[:1]) + name[1:]
	}
	return legal(name, nodeReserved)
}

// typeName returns what the names of a tool's types begin with.
func typeName(tool string) string { return legal(pascal(words(tool)), nil) }

// pascal joins words, each with a capital first letter and small others.
func pascal(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(strings.ToUpper(w[:1]))
		b.WriteString(strings.ToLower(w[1:]))
	}
	return b.String()
}

// legal makes an identifier of letters, digits and underscores.
func legal(name string, reserved []string) string {
	if name == "" {
		return "_"
	}
	if _, found := slices.BinarySearch(reserved, name); found {
		return name + "_"
	}
	if '0' <= name[0] && name[0] <= '9' {
		return "_" + name
	}
	return name
}

// isIdentifier reports whether a tool's or property's own name is an
// identifier of ASCII letters, digits and underscores that is not reserved.
func isIdentifier(name string, reserved []string) bool {
	if name == "" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !isASCIILetterOrDigit(rune(name[i])) && name[i] != '_' {
			return false
		}
	}
	_, found := slices.BinarySearch(reserved, name)
	return !found
}

// distinct assigns a unique identifier to each tool. If several tools map to one
// identifier, the tool with exactly that name keeps it, and every other gets "_" and the
// first six hex digits of SHA-256(name). A tool's name that is an identifier is reserved
// for it, because it works as an alias. The result depends only on the set of names.
func distinct(tools []string, identifier func(tool string) string, own func(tool string) bool) map[string]string {
	taken := make(map[string]string, 2*len(tools)) // identifier → tool; "" where several want it
	for _, tool := range tools {
		id := identifier(tool)
		if _, met := taken[id]; met {
			taken[id] = ""
		} else {
			taken[id] = tool
		}
	}
	for _, tool := range tools {
		if own(tool) {
			taken[tool] = tool
		}
	}
	names := make(map[string]string, len(tools))
	var meeting []string
	for _, tool := range tools {
		if id := identifier(tool); taken[id] == tool {
			names[tool] = id
		} else {
			meeting = append(meeting, tool)
		}
	}
	slices.Sort(meeting)
	for _, tool := range meeting {
		names[tool] = unlike(identifier(tool), tool, func(id string) bool { _, met := taken[id]; return met })
		taken[names[tool]] = tool
	}
	return names
}

// unlike appends "_" and the first six hex digits of SHA-256(of) to an
// identifier, and more of them while the result is taken.
func unlike(identifier, of string, taken func(string) bool) string {
	sum := sha256.Sum256([]byte(of))
	digest := hex.EncodeToString(sum[:])
	for digits := 6; digits < len(digest); digits += 2 {
		if name := identifier + "_" + digest[:digits]; !taken(name) {
			return name
		}
	}
	return identifier + "_" + digest
}

// stems assigns each identifier a file name without extension. It is the identifier, or a
// shortened form with a digest if the identifier is too long, reserved, or equal to
// another one on a case-insensitive file system.
func stems(identifiers []string, reserved ...string) map[string]string {
	folded := make(map[string]int, len(identifiers)+len(reserved))
	for _, name := range reserved {
		folded[name]++
	}
	for _, id := range identifiers {
		folded[strings.ToLower(id)]++
	}
	out := make(map[string]string, len(identifiers))
	for _, id := range identifiers {
		out[id] = id
		if len(id) > maxStem || folded[strings.ToLower(id)] > 1 {
			out[id] = unlike(id[:min(len(id), maxStem-13)], id,
				func(name string) bool { return folded[strings.ToLower(name)] > 0 })
			folded[strings.ToLower(out[id])]++
		}
	}
	return out
}
