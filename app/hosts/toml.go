package hosts

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML. Its tables are edited as lines, because no library preserves the formatting
// of TOML.
var tomlFormat = format{name: "TOML", decode: decodeTOML, edit: editTOML, raw: rawTOML, encode: encodeTOML}

func decodeTOML(data []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := toml.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("not valid TOML: %w", err)
	}
	return content, nil
}

// tomlBlocks returns the lines of every table below key, one block for each table.
func tomlBlocks(data []byte, key string) ([]block, error) {
	type header struct {
		line int
		path []string
	}
	var headers []header
	parser := unstable.Parser{}
	parser.Reset(data)
	for parser.NextExpression() {
		e := parser.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		var h header
		for it := e.Key(); it.Next(); {
			part := it.Node()
			if len(h.path) == 0 {
				h.line = bytes.Count(data[:part.Raw.Offset], []byte("\n"))
			}
			h.path = append(h.path, string(part.Data))
		}
		headers = append(headers, h)
	}
	if err := parser.Error(); err != nil {
		return nil, fmt.Errorf("not valid TOML: %w", err)
	}
	lines := blockLines(data)
	var blocks []block
	for i, h := range headers {
		if len(h.path) < 2 || h.path[0] != key {
			continue
		}
		end := len(lines)
		if i+1 < len(headers) {
			end = headers[i+1].line
		}
		blocks = append(blocks, ownLines(lines, block{h.path[1], h.line, end}))
	}
	return blocks, nil
}

func editTOML(data []byte, key string, remove []string, add map[string]string) ([]byte, error) {
	blocks, err := tomlBlocks(data, key)
	if err != nil {
		return nil, err
	}
	for _, name := range remove {
		if !slices.ContainsFunc(blocks, func(b block) bool { return b.name == name }) {
			return nil, fmt.Errorf("%s.%s is not a separate table: write it as [%s.%s]", key, name, key, name)
		}
	}
	kept, at := withoutBlocks(blockLines(data), blocks, remove)
	if at < 0 {
		at = len(kept)
	}
	var added strings.Builder
	for _, name := range sortedKeys(add) {
		if at > 0 && strings.TrimSpace(kept[at-1]) != "" || added.Len() > 0 {
			added.WriteString("\n")
		}
		added.WriteString(add[name])
	}
	if at < len(kept) && strings.TrimSpace(kept[at]) != "" && added.Len() > 0 {
		added.WriteString("\n")
	}
	return []byte(strings.Join(slices.Insert(kept, at, added.String()), "")), nil
}

func rawTOML(data []byte, key string, names []string) (map[string]string, error) {
	blocks, err := tomlBlocks(data, key)
	if err != nil {
		return nil, err
	}
	return blockTexts(blockLines(data), blocks, names), nil
}

func encodeTOML(key, name string, value written) (string, error) {
	out, err := toml.Marshal(map[string]map[string]written{key: {name: value}})
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(string(out), "["+key+"]\n"), nil
}
