package codegen

import "strings"

// maxDemand bounds the words about alternatives that demand keys, in bytes.
const maxDemand = 200

// onlyRequire reports whether every alternative does nothing but demand keys.
// Types for each combination would say less than they cost to read.
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
		var keys []string
		for _, key := range list(part.get("required")) {
			if key.kind == isString {
				keys = append(keys, nodeLiteral(key.text))
			}
		}
		if len(keys) == 0 {
			return s
		}
		choices = append(choices, strings.Join(keys, " and "))
	}
	out := *s
	out.demand = oneLine(strings.Join(choices, ", or "), maxDemand)
	return &out
}

// recordProse returns what a record's own comment says, empty for nothing: the
// description where nothing else shows it, and what its types leave open.
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
	return strings.Join(parts, " ")
}
