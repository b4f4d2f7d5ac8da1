package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// yamlFormat is YAML in block style, whose entries are edited as lines, so that
// comments and spelling stay.
var yamlFormat = format{name: "YAML", decode: decodeYAML, edit: editYAML, raw: rawYAML, encode: encodeYAML}

func decodeYAML(data []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := yaml.Unmarshal(data, &content); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	return content, nil
}

// yamlPlace is the position of the mapping under a key.
type yamlPlace struct {
	blocks []block
	line   int    // of the key, from 0; -1 if the key is missing
	empty  bool   // the key has no value, or {}
	end    int    // the first line after the mapping
	indent string // of the mapping's keys
}

// findYAML finds the mapping under a top-level key.
func findYAML(data []byte, key string) (yamlPlace, error) {
	place := yamlPlace{line: -1, indent: "  "}
	lines := blockLines(data)
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil && !errors.Is(err, io.EOF) {
		return place, fmt.Errorf("not valid YAML: %w", err)
	}
	if document.Kind == 0 || len(document.Content) == 0 {
		return place, nil
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode || top.Style&yaml.FlowStyle != 0 {
		return place, errors.New("the file is not a mapping in block style")
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != key {
			continue
		}
		place.line, place.end = top.Content[i].Line-1, len(lines)
		if i+2 < len(top.Content) {
			place.end = top.Content[i+2].Line - 1
		}
		place.end = trimEnd(lines, block{start: place.line, end: place.end}).end
		return place, place.members(lines, top.Content[i+1], key)
	}
	return place, nil
}

// members finds the lines of each member of the mapping.
func (p *yamlPlace) members(lines []string, value *yaml.Node, key string) error {
	if len(value.Content) == 0 && (value.Kind == yaml.MappingNode || value.Tag == "!!null") {
		p.empty = true
		return nil
	}
	if value.Kind != yaml.MappingNode || value.Style&yaml.FlowStyle != 0 {
		return fmt.Errorf("%s is not a mapping in block style", key)
	}
	p.indent = strings.Repeat(" ", value.Content[0].Column-1)
	for j := 0; j < len(value.Content); j += 2 {
		b := block{name: value.Content[j].Value, start: value.Content[j].Line - 1, end: p.end}
		if j+2 < len(value.Content) {
			b.end = value.Content[j+2].Line - 1
		}
		p.blocks = append(p.blocks, ownLines(lines, b))
	}
	return nil
}

func editYAML(data []byte, key string, remove []string, add map[string]string) ([]byte, error) {
	place, err := findYAML(data, key)
	if err != nil {
		return nil, err
	}
	var added strings.Builder
	for _, name := range sortedKeys(add) {
		for line := range strings.Lines(add[name]) {
			added.WriteString(place.indent + line)
		}
	}
	lines := blockLines(data)
	switch {
	case place.line < 0:
		return []byte(strings.Join(lines, "") + key + ":\n" + added.String()), nil
	case place.empty:
		lines[place.line] = key + ":\n"
		return []byte(strings.Join(slices.Insert(lines, place.line+1, added.String()), "")), nil
	}
	lines = slices.Insert(lines, place.end, added.String()) // after every block, so that their line numbers stay valid
	left := slices.DeleteFunc(slices.Clone(place.blocks), func(b block) bool { return slices.Contains(remove, b.name) })
	if len(left) == 0 && added.Len() == 0 {
		lines[place.line] = key + ": {}\n"
	}
	kept, _ := withoutBlocks(lines, place.blocks, remove)
	return []byte(strings.Join(kept, "")), nil
}

// rawYAML returns the members' lines without the mapping's indentation.
func rawYAML(data []byte, key string, names []string) (map[string]string, error) {
	place, err := findYAML(data, key)
	if err != nil {
		return nil, err
	}
	texts := blockTexts(blockLines(data), place.blocks, names)
	for name, text := range texts {
		var out strings.Builder
		for line := range strings.Lines(text) {
			out.WriteString(strings.TrimPrefix(line, place.indent))
		}
		texts[name] = out.String()
	}
	return texts, nil
}

func encodeYAML(_, name string, value written) (string, error) { return yamlMember(name, value) }

// yamlMember returns a member of a mapping in block style.
func yamlMember(name string, value any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]any{name: value}); err != nil {
		return "", err
	}
	return out.String(), encoder.Close()
}
