package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// largest is how many tools the largest server of the corpus has.
const largest = 235

// corpus contains lists of tools: real ones, from the directory in AIRLOCK_CORPUS or
// beside the repository, or a generated one.
type corpus struct {
	kind  string // "real" or "made-up"
	lists []toolList
}

type toolList struct {
	name string
	file []byte // a tools/list answer
}

func (b *bench) openCorpus() (*corpus, error) {
	dir := os.Getenv("AIRLOCK_CORPUS")
	if dir == "" {
		dir = filepath.Join(b.root, "..", "shared", "corpus")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "tools", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return madeUp()
	}
	real := &corpus{kind: "real"}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		real.lists = append(real.lists, toolList{strings.TrimSuffix(filepath.Base(path), ".json"), file})
	}
	return real, nil
}

// madeUp is one list as long as the longest real one.
func madeUp() (*corpus, error) {
	tools := make([]map[string]any, largest)
	for i := range tools {
		properties := map[string]any{}
		for p := range 8 {
			properties[fmt.Sprintf("property_%d", p)] = map[string]string{"type": "string",
				"description": "What the property is for, in a sentence of usual length."}
		}
		tools[i] = map[string]any{
			"name":        fmt.Sprintf("tool_%d", i),
			"description": "Does something with a resource of the service, and returns its result.",
			"inputSchema": map[string]any{"type": "object", "properties": properties,
				"required": []string{"property_0"}},
		}
	}
	file, err := json.Marshal(map[string]any{"tools": tools})
	return &corpus{"made-up", []toolList{{"made-up", file}}}, err
}

// parse reads the list as it comes from a server of the given ID.
func (l toolList) parse(id string) ([]catalog.Tool, error) {
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(l.file, &list); err != nil {
		return nil, fmt.Errorf("reading the tools of %q: %w", l.name, err)
	}
	tools, _ := catalog.ParseTools(id, list.Tools)
	return tools, nil
}

// servers returns servers with so many tools: the lists come again, under other
// names, until there are enough.
func (c *corpus) servers(count int) ([]catalog.Server, error) {
	var servers []catalog.Server
	for round := 0; count > 0; round++ {
		for _, list := range c.lists {
			id := fmt.Sprintf("%s-%d", list.name, round)
			tools, err := list.parse(id)
			if err != nil {
				return nil, err
			}
			tools = tools[:min(len(tools), count)]
			count -= len(tools)
			servers = append(servers, catalog.Server{ID: id, Tools: tools})
		}
	}
	return servers, nil
}

// longest is the list with the most tools, and how many it has.
func (c *corpus) longest() (found toolList, count int, err error) {
	for _, list := range c.lists {
		tools, err := list.parse(list.name)
		if err != nil {
			return toolList{}, 0, err
		}
		if len(tools) > count {
			found, count = list, len(tools)
		}
	}
	return found, count, nil
}
