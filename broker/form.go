package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Limits of a server's question to a person.
const (
	maxFormBytes   = 16 << 10
	maxFormFields  = 20
	maxFormChoices = 100
	maxFormText    = 500 // characters of a title or a description
	maxAskedText   = 2000
)

// form is a server's question in a form that is safe to show to a person.
type form struct {
	approval.Elicitation
	shown json.RawMessage // the whole question, for the person
	what  string          // in a few words, for the record: never values
	free  []string        // names of the fields that take any text
}

// readForm checks a server's question and makes it safe to show. It must be flat, as required by
// MCP (MCP 2025-11-25, Elicitation, Requested Schema), small, and without hidden characters. A
// question with an address shows the address, and Airlock does not open it.
func readForm(e upstream.Elicitation) (form, error) {
	message := visible.Lines(e.Message)
	if len([]rune(message)) > maxAskedText {
		return form{}, fmt.Errorf("its question is longer than %d characters", maxAskedText)
	}
	if e.URL != "" {
		return readAddress(e, message)
	}
	f := form{what: "a form without fields"}
	if e.Schema == nil {
		return f.show(map[string]any{"message": message})
	}
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	switch {
	case len(e.Schema) > maxFormBytes:
		return form{}, fmt.Errorf("its form has more than %d bytes", maxFormBytes)
	case canon.IsDeep(e.Schema) || strictjson.UnmarshalOpen(e.Schema, &schema) != nil || schema.Type != "object" &&
		schema.Type != "":
		return form{}, errors.New("its form does not have the structure that MCP allows")
	case len(schema.Properties) > maxFormFields:
		return form{}, fmt.Errorf("its form has more than %d fields", maxFormFields)
	}
	fields := map[string]any{}
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range names {
		if visible.Line(name) != name || name == "" {
			return form{}, errors.New("a field of its form has a name with hidden characters")
		}
		field, err := readField(schema.Properties[name])
		if err != nil {
			return form{}, fmt.Errorf("the field %q of its form %w", name, err)
		}
		if field["type"] == "string" && field["enum"] == nil && field["oneOf"] == nil {
			f.free = append(f.free, name)
		}
		_, hasDefault := field["default"]
		f.NeedsValues = f.NeedsValues || slices.Contains(schema.Required, name) && !hasDefault
		fields[name] = field
	}
	clean := map[string]any{"type": "object", "properties": fields}
	if required := slices.DeleteFunc(schema.Required, func(name string) bool { return fields[name] == nil }); len(
		required) > 0 {
		clean["required"] = required
	}
	raw, err := json.Marshal(clean)
	if err != nil {
		return form{}, err
	}
	f.Schema, f.what = raw, fmt.Sprintf("a form with the fields %q", names)
	return f.show(map[string]any{"message": message, "fields": fields, "required": clean["required"]})
}

// readAddress checks the address of a question in URL mode.
func readAddress(e upstream.Elicitation, message string) (form, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" || visible.Line(e.URL) != e.URL ||
		len(e.URL) > maxAskedText {
		return form{}, errors.New("it wants an address opened that is not a plain https address")
	}
	f := form{Elicitation: approval.Elicitation{URL: e.URL}, what: fmt.Sprintf("an address at %q", u.Host)}
	return f.show(map[string]any{"message": message, "address": e.URL, "host": u.Host})
}

func (f form) show(question map[string]any) (form, error) {
	for name, value := range question {
		if value == nil {
			delete(question, name)
		}
	}
	raw, err := json.Marshal(question)
	f.shown = raw
	return f, err
}

// readField copies the members of a field that MCP allows, with visible texts.
func readField(raw json.RawMessage) (map[string]any, error) {
	var given map[string]any
	if strictjson.UnmarshalOpen(raw, &given) != nil || given == nil {
		return nil, errors.New("cannot be read")
	}
	kind, _ := given["type"].(string)
	if !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, kind) {
		return nil, errors.New("has a type that MCP does not allow")
	}
	field := map[string]any{"type": kind}
	for _, name := range []string{"title", "description"} {
		if text, ok := given[name].(string); ok {
			field[name] = cutText(visible.Line(text))
		}
	}
	for _, name := range []string{"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"} {
		if number, ok := given[name].(float64); ok {
			field[name] = number
		}
	}
	if format, ok := given["format"].(string); ok &&
		slices.Contains([]string{"email", "uri", "date", "date-time"}, format) {
		field["format"] = format
	}
	for _, name := range []string{"enum", "enumNames", "oneOf", "items", "default"} {
		value, ok := given[name]
		if !ok {
			continue
		}
		if !isPlain(value, 3) {
			return nil, fmt.Errorf("has %s that cannot be shown", name)
		}
		field[name] = value
	}
	if kind == "array" && field["items"] == nil {
		return nil, errors.New("is a list without a type for its items")
	}
	return field, nil
}

func cutText(text string) string {
	if runes := []rune(text); len(runes) > maxFormText {
		return string(runes[:maxFormText]) + "…"
	}
	return text
}

// isPlain reports whether choices are few, flat and without hidden characters. The chosen value is
// sent back unchanged.
func isPlain(value any, depth int) bool {
	switch v := value.(type) {
	case string:
		return visible.Line(v) == v && len(v) <= maxFormText
	case []any:
		return depth > 0 && len(v) <= maxFormChoices &&
			!slices.ContainsFunc(v, func(each any) bool { return !isPlain(each, depth-1) })
	case map[string]any:
		for name, each := range v {
			if depth == 0 || !slices.Contains([]string{"const", "title", "type", "enum", "anyOf", "oneOf"}, name) ||
				!isPlain(each, depth-1) {
				return false
			}
		}
	}
	return true
}
