package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxSchemaText is how deep below a tool's arguments parameter names and
// descriptions are still searched.
const maxSchemaText = 6

// shownText is a tool's title and description after Clean.
type shownText struct{ title, description string }

// searched splits a tool's texts into words. Text that is withheld from the model cannot
// be found either.
func searched(tool *Tool, shown shownText) document {
	var names, text wordList
	var schema any
	if strictjson.UnmarshalOpen(tool.InputSchema, &schema) == nil {
		collectParameters(schema, 0, &names, &text)
	}
	lead, rest := cutLead(shown.description)
	return document{deprecated: isDeprecated(shown.title, shown.description), fields: fields{
		fieldServer:        contentWords(tool.ServerID, maxFieldWords),
		fieldName:          contentWords(tool.Name, maxFieldWords),
		fieldTitle:         contentWords(shown.title, maxFieldWords),
		fieldLead:          contentWords(lead, maxFieldWords),
		fieldDescription:   contentWords(rest, maxFieldWords),
		fieldParameters:    names.words,
		fieldParameterText: text.words,
	}}
}

// maxLead bounds the lead of a description in bytes.
const maxLead = 240

// cutLead splits a description into its first sentence, which usually states what the
// tool does, and the rest.
func cutLead(text string) (lead, rest string) {
	text = strings.TrimSpace(text)
	if len(text) <= maxWhole {
		return text, ""
	}
	for i := 0; i < len(text) && i < maxLead; i++ {
		switch {
		case text[i] == '\n' && i >= minLead,
			text[i] == '.' && i >= minLead && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n'):
			return text[:i], text[i+1:]
		}
	}
	cut := strings.LastIndexByte(text[:maxLead], ' ')
	if cut < 0 {
		return "", text
	}
	return text[:cut], text[cut:]
}

// minLead keeps "[Deprecated]." and the like from being a lead.
const minLead = 20

// maxWhole is how long a description may be to count as a lead altogether.
const maxWhole = 320

// wordList gathers words up to the limit of a field.
type wordList struct{ words []string }

func (l *wordList) add(text string) {
	if left := maxFieldWords - len(l.words); left > 0 && text != "" {
		l.words = append(l.words, contentWords(text, left)...)
	}
}

// addText adds v if it is text, cleaned.
func (l *wordList) addText(v any) {
	if text, ok := v.(string); ok {
		l.add(Clean(text))
	}
}

// collectParameters collects parameter names and the words of their descriptions and
// enumerated values. It ignores parts of a schema that do not have the expected type.
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
