package policies

import (
	"slices"
	"strings"
)

// inputOf returns the possible arguments of a tool according to its input schema. Arguments are
// validated before policies are evaluated.
func inputOf(tool *toolShape) abstract {
	v := (&inputs{root: tool.input}).of(tool.input, maxTypeDepth)
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
		return constants(values)
	}
	if value, ok := object["const"]; ok {
		return constants([]any{value})
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

// typed returns the possible values of one JSON type. A number is a Long or a decimal.
func (in *inputs) typed(word any, object map[string]any, depth int) abstract {
	switch word {
	case "string":
		return of(kindString)
	case "boolean":
		return of(kindBool)
	case "integer":
		return of(kindLong)
	case "number":
		return of(kindLong | kindDecimal)
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

// constants returns the set of several JSON values.
func constants(values []any) abstract {
	var alternatives []abstract
	for _, value := range values {
		switch v := value.(type) {
		case string:
			alternatives = append(alternatives, text(v))
		case bool:
			alternatives = append(alternatives, boolean(v))
		case nil:
		default:
			return anything()
		}
	}
	return union(alternatives...)
}
