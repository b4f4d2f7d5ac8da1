package catalog

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxSchemaText is how deep below a tool's arguments parameter names and
// descriptions are still searched.
const maxSchemaText = 6

// searchedFields cuts what a tool says about itself into words. Text that is
// withheld from the model cannot be found either.
func searchedFields(tool *Tool) fields {
	var names, text wordList
	collectParameters(tool.InputSchema, 0, &names, &text)
	return fields{
		fieldServer:        contentWords(tool.ServerID, maxFieldWords),
		fieldName:          contentWords(tool.Name, maxFieldWords),
		fieldTitle:         contentWords(Clean(tool.displayTitle()), maxFieldWords),
		fieldDescription:   contentWords(Clean(tool.Description), maxFieldWords),
		fieldParameters:    names.words,
		fieldParameterText: text.words,
	}
}

// wordList gathers words up to the limit of a field.
type wordList struct{ words []string }

func (l *wordList) add(text string) {
	if room := maxFieldWords - len(l.words); room > 0 && text != "" {
		l.words = append(l.words, contentWords(text, room)...)
	}
}

// collectParameters gathers parameter names, and what a schema says about them
// in descriptions and enumerated texts. It reads schemas loosely: whatever does
// not have the expected type says nothing.
func collectParameters(schema json.RawMessage, depth int, names, text *wordList) {
	var object map[string]json.RawMessage
	if depth > maxSchemaText || kindOf(schema) != kindObject || json.Unmarshal(schema, &object) != nil {
		return
	}
	text.add(textOf(object["description"]))
	for _, value := range listOf(object["enum"]) {
		text.add(textOf(value))
	}
	var properties map[string]json.RawMessage
	if kindOf(object["properties"]) == kindObject && json.Unmarshal(object["properties"], &properties) == nil {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			names.add(name)
			collectParameters(properties[name], depth+1, names, text)
		}
	}
	collectParameters(object["items"], depth+1, names, text)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		for _, alternative := range listOf(object[key]) {
			collectParameters(alternative, depth+1, names, text)
		}
	}
}

func textOf(raw json.RawMessage) string {
	var text string
	if kindOf(raw) != kindString || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return Clean(text)
}

func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if kindOf(raw) != kindArray || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
