package policies

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxSchemas limits the size of a schemaCache.
const maxSchemas = 1024

// schemaCache caches the possible arguments of tools, because decoding a schema takes longer than a decision. It is
// safe for concurrent use.
type schemaCache struct {
	mu    sync.Mutex // guards known
	known map[string]abstract
}

// of returns the possible arguments of a tool with this input schema. A schema without a number is not decoded,
// because nothing else in it changes the Cedar form of an argument.
func (c *schemaCache) of(schema json.RawMessage) abstract {
	if !bytes.Contains(schema, []byte("number")) && !bytes.Contains(schema, []byte(`\u`)) {
		return anything()
	}
	c.mu.Lock()
	known, ok := c.known[string(schema)]
	c.mu.Unlock()
	if ok {
		return known
	}
	made := anything()
	if root, err := strictjson.Value(schema); err == nil {
		made = inputOf(root)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxSchemas {
		c.known = map[string]abstract{}
	}
	c.known[string(schema)] = made
	return made
}

// inputOf returns the possible arguments of a tool according to its decoded input schema. Arguments are
// validated before policies are evaluated.
func inputOf(schema any) abstract {
	v := (&inputs{root: schema}).of(schema, maxTypeDepth)
	if v.kinds == kindRecord {
		return v
	}
	return abstract{kinds: kindRecord} // arguments are always an object
}

// inputs derives the possible values of a JSON Schema.
type inputs struct{ root any }

// of returns the possible values of a schema. For schemas that it does not understand, it
// returns any value.
func (in *inputs) of(node any, depth int) abstract {
	object, ok := node.(map[string]any)
	if !ok || depth == 0 {
		return anything()
	}
	if target, ok := in.reference(object); ok {
		return in.of(target, depth-1)
	}
	if values, ok := object["enum"].([]any); ok {
		return constants(values, object["type"])
	}
	if value, ok := object["const"]; ok {
		return constants([]any{value}, object["type"])
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if several, ok := object[keyword].([]any); ok && len(several) > 0 && object["type"] == nil {
			alternatives := make([]abstract, 0, len(several))
			for _, one := range several {
				if v := in.of(one, depth-1); v.kinds != 0 { // null is absent
					alternatives = append(alternatives, v)
				}
			}
			return union(alternatives...)
		}
	}
	var words []any
	switch declared := object["type"].(type) {
	case string:
		words = []any{declared}
	case []any:
		words = declared
	default:
		return anything()
	}
	var alternatives []abstract
	for _, word := range words {
		if word != "null" {
			alternatives = append(alternatives, in.typed(word, object, depth))
		}
	}
	if len(alternatives) == 0 {
		return abstract{}
	}
	return union(alternatives...)
}

// typed returns the possible values of one JSON type.
func (in *inputs) typed(word any, object map[string]any, depth int) abstract {
	switch word {
	case "string":
		return of(kindString)
	case "boolean":
		return of(kindBool)
	case "integer", "number":
		return of(numeric(word))
	case "array":
		element := in.of(object["items"], depth-1)
		return abstract{kinds: kindSet, element: &element}
	case "object":
		return in.object(object, depth)
	}
	return anything()
}

func (in *inputs) object(object map[string]any, depth int) abstract {
	properties, _ := object["properties"].(map[string]any)
	required, _ := object["required"].([]any)
	record := abstract{kinds: kindRecord, members: map[string]member{}, closed: !isOpen(object, properties)}
	for name, property := range properties {
		m := member{value: in.of(property, depth-1), presence: maybe}
		if slices.Contains(required, any(name)) && !in.nullable(property, depth-1) {
			m.presence = surely
		}
		record.members[name] = m
	}
	return record
}

// nullable reports whether a value can be null, which counts as absent.
func (in *inputs) nullable(node any, depth int) bool {
	object, ok := node.(map[string]any)
	if !ok || depth <= 0 {
		return false
	}
	if target, ok := in.reference(object); ok {
		return in.nullable(target, depth-1)
	}
	if words, ok := object["type"].([]any); ok && slices.Contains(words, any("null")) {
		return true
	}
	if values, ok := object["enum"].([]any); ok && slices.Contains(values, any(nil)) {
		return true
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if several, ok := object[keyword].([]any); ok && slices.ContainsFunc(several, func(one any) bool {
			o, ok := one.(map[string]any)
			return ok && o["type"] == "null" || in.nullable(one, depth-1)
		}) {
			return true
		}
	}
	return object["type"] == "null"
}

// reference follows a $ref within the schema.
func (in *inputs) reference(object map[string]any) (any, bool) {
	path, ok := object["$ref"].(string)
	if !ok || !strings.HasPrefix(path, "#/") {
		return nil, false
	}
	node := in.root
	for name := range strings.SplitSeq(path[2:], "/") {
		here, ok := node.(map[string]any)
		if !ok {
			return nil, false
		}
		node = here[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return node, node != nil
}

// numeric returns the kinds of number for a JSON type: a Long for an integer, a decimal for a number. Without such a
// type, a number can be either: see number.
func numeric(word any) kinds {
	switch word {
	case "integer":
		return kindLong
	case "number":
		return kindDecimal
	}
	return kindLong | kindDecimal
}

// constants returns the set of several JSON values of a declared type.
func constants(values []any, declared any) abstract {
	var alternatives []abstract
	for _, value := range values {
		switch v := value.(type) {
		case string:
			alternatives = append(alternatives, text(v))
		case bool:
			alternatives = append(alternatives, boolean(v))
		case json.Number:
			alternatives = append(alternatives, of(numeric(declared)))
		case nil:
		default:
			return anything()
		}
	}
	return union(alternatives...)
}
