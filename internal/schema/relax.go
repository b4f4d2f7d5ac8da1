package schema

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// relax returns the schema without the patterns that RE2 does not support, and those
// patterns, sorted. JSON Schema uses ECMA-262 expressions. Most of them are valid RE2, some
// after rewriting \uXXXX, but not those with look-around or back-references. Tools with
// such patterns are not refused: the server checks its own patterns, and policies do not
// depend on them.
//
// Omitting a pattern must never cause a valid value to be refused. So if one was omitted,
// the keywords that invert a match (not, if, oneOf and similar) are omitted or weakened too.
func relax(doc any) (relaxed any, unchecked []string) {
	dropped := map[string]bool{}
	relaxed = rewrite(doc, func(object map[string]any) { translatePatterns(object, dropped) })
	if len(dropped) > 0 {
		relaxed = rewrite(relaxed, weaken)
	}
	return relaxed, slices.Sorted(maps.Keys(dropped))
}

// rewrite copies a schema, calling edit on the copy of each object that is one.
func rewrite(v any, edit func(map[string]any)) any {
	switch v := v.(type) {
	case map[string]any:
		object := maps.Clone(v)
		edit(object)
		for keyword, member := range object {
			object[keyword] = rewriteMember(keyword, member, edit)
		}
		return object
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = rewrite(item, edit)
		}
		return items
	default:
		return v
	}
}

func rewriteMember(keyword string, member any, edit func(map[string]any)) any {
	switch keyword {
	case "enum", "const", "default", "examples":
		return member // values, not schemas
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		named, ok := member.(map[string]any) // names of the author's choice, each with a schema
		if !ok {
			return member
		}
		out := make(map[string]any, len(named))
		for name, sub := range named {
			out[name] = rewrite(sub, edit)
		}
		return out
	default:
		return rewrite(member, edit)
	}
}

func translatePatterns(object map[string]any, dropped map[string]bool) {
	if pattern, ok := object["pattern"].(string); ok {
		if re, ok := translate(pattern); ok {
			object["pattern"] = re
		} else {
			dropped[pattern] = true
			delete(object, "pattern")
		}
	}
	patterns, ok := object["patternProperties"].(map[string]any)
	if !ok {
		return
	}
	kept := map[string]any{}
	for pattern, sub := range patterns {
		if re, ok := translate(pattern); ok {
			kept[re] = sub
			continue
		}
		dropped[pattern] = true
		delete(object, "additionalProperties") // properties that match the pattern would now be "additional"
	}
	object["patternProperties"] = kept
}

var unicodeEscape = lazyregexp.New(`\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})`)

// translate turns an ECMA-262 expression into one for RE2, if it can be one.
func translate(pattern string) (string, bool) {
	re := pattern
	if !strings.Contains(pattern, `\\u`) { // there the u is a letter after a backslash
		re = unicodeEscape.ReplaceAllString(pattern, `\x{$1$2}`)
	}
	_, err := regexp.Compile(re)
	return re, err == nil
}

// weaken makes one object of a schema monotone: a value that matches its parts matches it.
func weaken(object map[string]any) {
	for _, keyword := range []string{"not", "if", "then", "else", "maxContains", "unevaluatedProperties",
		"unevaluatedItems"} {
		delete(object, keyword)
	}
	if branches, ok := object["oneOf"]; ok {
		delete(object, "oneOf")
		if _, taken := object["anyOf"]; !taken {
			object["anyOf"] = branches
		}
	}
}
