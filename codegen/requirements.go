package codegen

import "strings"

// maxDemand bounds the words about alternatives that demand keys, in bytes.
const maxDemand = 200

// onlyRequire reports whether every alternative only requires keys. Types for each
// combination would be longer than useful.
func onlyRequire(parts []*value) bool {
	for _, part := range parts {
		for _, m := range part.members {
			switch m.key {
			case "required", "description", "title", "type":
			default:
				return false
			}
		}
		if part.get("required") == nil {
			return false
		}
	}
	return true
}

// demand notes on a record what such alternatives demand: "id, or name and
// zone". One of them that demands nothing makes the others moot.
func (b *builder) demand(s *shape, parts []*value) *shape {
	if s.form != record {
		return s
	}
	var choices []string
	for _, part := range parts {
		keys := quotedKeys(part.get("required"))
		if keys == "" {
			return s
		}
		choices = append(choices, keys)
	}
	out := *s
	out.demand = oneLine(strings.Join(choices, ", or "), maxDemand)
	return &out
}

// quotedKeys lists the keys that an array demands, empty for none.
func quotedKeys(keys *value) string {
	var quoted []string
	for _, key := range list(keys) {
		if key.kind == isString {
			quoted = append(quoted, nodeLiteral(key.text))
		}
	}
	return strings.Join(quoted, " and ")
}

// dependents words dependentRequired: which keys demand which others.
func dependents(s *value) string {
	var words []string
	if dependent := s.get("dependentRequired"); dependent != nil {
		for _, m := range dependent.members {
			if keys := quotedKeys(m.value); keys != "" {
				words = append(words, "Beside "+nodeLiteral(m.key)+" it needs "+keys+".")
			}
		}
	}
	return oneLine(strings.Join(words, " "), maxDemand)
}

// recordProse returns a record's comment, which may be empty: the description, if it is
// not shown elsewhere, and the constraints that its types do not express.
func recordProse(d *declaration, limit int) string {
	var parts []string
	if d.described && d.shape.about != nil {
		if line := oneLine(d.shape.about.str("description"), limit); line != "" {
			parts = append(parts, endSentence(line))
		}
	}
	if d.shape.demand != "" {
		parts = append(parts, "Needs "+d.shape.demand+".")
	}
	if words := dependents(d.shape.about); words != "" {
		parts = append(parts, words)
	}
	return strings.Join(parts, " ")
}
