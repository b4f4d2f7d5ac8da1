package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// shadowing are the phrases with which one tool displaces another (tool shadowing).
var shadowing = []string{
	"instead of", "rather than", "replaces", "replacement for", "supersedes", "deprecated", "do not use", "don't use",
	"never use", "stop using", "before calling", "whenever", "also call", "must first", "takes priority", "official",
}

// imitations returns a flag for each way in which a tool imitates another server: its name
// repeats that server's ID and one of its tools, or its texts instruct the model how to
// use that server's tools.
func (s *Snapshot) imitations(tool *Tool) []Flag {
	var flags []Flag
	if other := s.namesake(tool); other != "" {
		flags = append(flags, Flag{FlagImitation, "name",
			fmt.Sprintf("this tool of server %q is named like one of server %q", tool.ServerID, other)})
	}
	for _, part := range []struct{ field, text string }{{"title", tool.Title}, {"description", tool.Description}} {
		if other := s.shadowed(tool, part.text); other != "" {
			flags = append(flags, Flag{FlagImitation, part.field,
				fmt.Sprintf("this tool of server %q gives rules for using server %q", tool.ServerID, other)})
		}
	}
	return flags
}

// namesake returns the other server whose ID, and the name of one of whose
// tools, make up the name of this one, if there is such a server. A server that
// names its own tools after itself imitates none.
func (s *Snapshot) namesake(tool *Tool) string {
	words := splitWords(tool.Name)
	for n := 1; n < len(words); n++ {
		server := strings.Join(words[:n], "")
		if server == spelling(tool.ServerID) {
			return ""
		}
		short, whole := s.owners[strings.Join(words[n:], "")], s.owners[strings.Join(words, "")]
		for _, owner := range slices.Concat(short, whole) {
			if owner != tool.ServerID && spelling(owner) == server {
				return owner
			}
		}
	}
	return ""
}

// shadowed returns the other server for whose tools a text gives rules, or "". Only a tool
// name that is unique among servers and not a plain word identifies a server.
func (s *Snapshot) shadowed(tool *Tool, text string) string {
	if len(s.servers) < 2 || !containsAny(strings.ToLower(text), shadowing) {
		return ""
	}
	for sentence := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune("!?;\n", c) }) {
		if !containsAny(strings.ToLower(sentence), shadowing) {
			continue
		}
		for name := range strings.FieldsFuncSeq(sentence, func(c rune) bool { return !isNameCharacter(c) }) {
			name = strings.Trim(name, ".-")
			owners := s.owners[spelling(name)]
			if len(owners) == 1 && owners[0] != tool.ServerID && strings.ContainsAny(name, "_-.") {
				return owners[0]
			}
		}
	}
	return ""
}

// isNameCharacter reports whether c is allowed in a tool's name.
func isNameCharacter(c rune) bool {
	return c == '_' || c == '-' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// spelling writes a name so that its variants (case, camelCase, separators)
// compare equal.
func spelling(name string) string { return strings.Join(splitWords(name), "") }
