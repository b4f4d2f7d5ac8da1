package catalog

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxSchemaText is how deep below a tool's arguments parameter names and
// descriptions are still searched.
const maxSchemaText = 6

// shownText is what a tool says about itself, as a model may see it.
type shownText struct{ title, description string }

// searched cuts what a tool says about itself into words. Text that is withheld
// from the model cannot be found either.
func searched(tool *Tool, shown shownText) document {
	var names, text wordList
	var schema any
	if json.Unmarshal(tool.InputSchema, &schema) == nil {
		collectParameters(schema, 0, &names, &text)
	}
	return document{deprecated: isDeprecated(shown.title, shown.description), fields: fields{
		fieldServer:        contentWords(tool.ServerID, maxFieldWords),
		fieldName:          contentWords(tool.Name, maxFieldWords),
		fieldTitle:         contentWords(shown.title, maxFieldWords),
		fieldDescription:   contentWords(shown.description, maxFieldWords),
		fieldParameters:    names.words,
		fieldParameterText: text.words,
	}}
}

// wordList gathers words up to the limit of a field.
type wordList struct{ words []string }

func (l *wordList) add(text string) {
	if room := maxFieldWords - len(l.words); room > 0 && text != "" {
		l.words = append(l.words, contentWords(text, room)...)
	}
}

// addText adds v if it is text, cleaned.
func (l *wordList) addText(v any) {
	if text, ok := v.(string); ok {
		l.add(Clean(text))
	}
}

// collectParameters gathers parameter names, and what a schema says about them
// in descriptions and enumerated texts. It reads schemas loosely: whatever does
// not have the expected type says nothing.
func collectParameters(schema any, depth int, names, text *wordList) {
	object, ok := schema.(map[string]any)
	if !ok || depth > maxSchemaText {
		return
	}
	text.addText(object["description"])
	if values, ok := object["enum"].([]any); ok {
		for _, value := range values {
			text.addText(value)
		}
	}
	if properties, ok := object["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			names.add(name)
			collectParameters(properties[name], depth+1, names, text)
		}
	}
	collectParameters(object["items"], depth+1, names, text)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if alternatives, ok := object[key].([]any); ok {
			for _, alternative := range alternatives {
				collectParameters(alternative, depth+1, names, text)
			}
		}
	}
}
