package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxModuleName is the longest module name in bytes: a module is a directory, and
// no file name of a wrapper tree exceeds 100 bytes.
const maxModuleName = 100

// pythonKeywords are the reserved words of Python 3.14 that are all lower case,
// sorted. A module that bore such a name could not be imported.
var pythonKeywords = []string{
	"and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
	"elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in",
	"is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
	"with", "yield",
}

// ModuleName returns the name under which code imports a server's wrappers:
// lower case, every run of other characters than [a-z0-9] becomes "_", a
// leading digit gets "_" before it, a reserved word "_" after it. The result
// is a valid Python identifier of at most 100 bytes for every input. The names of two
// servers can collide; ModuleNames returns unique ones.
func ModuleName(serverID string) string {
	var b strings.Builder
	gap := false
	for i := 0; i < len(serverID); i++ {
		c := serverID[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteByte(c)
			gap = false
		case !gap:
			b.WriteByte('_')
			gap = true
		}
	}
	name := b.String()
	switch _, reserved := slices.BinarySearch(pythonKeywords, name); {
	case name == "":
		name = "_"
	case reserved:
		name += "_"
	case '0' <= name[0] && name[0] <= '9':
		name = "_" + name
	}
	if len(name) > maxModuleName {
		name = withDigest(name, serverID, 6)
	}
	return name
}

// ModuleNames returns the module name of each server of one configuration.
// Where several meet in one name, the server whose ID equals it keeps it and
// every other one gets "_" and the first six hex digits of SHA-256(ID). The
// result depends on the set of IDs only, not on their order.
func ModuleNames(serverIDs []string) map[string]string {
	wanted := make(map[string]int, len(serverIDs))
	names := make(map[string]string, len(serverIDs))
	for _, id := range serverIDs {
		if _, seen := names[id]; !seen {
			names[id] = ModuleName(id)
			wanted[names[id]]++
		}
	}
	taken := make(map[string]bool, len(names))
	var meeting []string
	for id, name := range names {
		if wanted[name] == 1 || name == id {
			taken[name] = true
		} else {
			meeting = append(meeting, id)
		}
	}
	slices.Sort(meeting)
	for _, id := range meeting {
		// A name with six digits can itself be another server's name: take more.
		for digits := 6; ; digits += 6 {
			name := withDigest(ModuleName(id), id, digits)
			if !taken[name] {
				names[id], taken[name] = name, true
				break
			}
		}
	}
	return names
}

// withDigest appends "_" and the first hex digits of SHA-256(of) to name. It shortens name
// if the result would exceed maxModuleName.
func withDigest(name, of string, digits int) string {
	sum := sha256.Sum256([]byte(of))
	suffix := "_" + hex.EncodeToString(sum[:])[:min(digits, 64)]
	return name[:min(len(name), maxModuleName-len(suffix))] + suffix
}
