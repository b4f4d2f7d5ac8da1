package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// manyTools is how many tools the operator with the strange schemas has.
const manyTools = 1500

// measureTools generates wrappers for many real tools and searches them.
func measureTools(_ context.Context, at place, runs int) error {
	servers, total, err := realServers(filepath.Join(at.root, "..", "shared", "corpus", "tools"))
	if err != nil || total == 0 {
		fmt.Printf("(no corpus of tool lists beside the repository: generation and search are not measured)\n")
		return nil
	}
	var generated times
	for range 7 {
		started := time.Now()
		for _, language := range []codegen.Language{codegen.Python, codegen.Node} {
			if _, err := codegen.Generate(servers, language); err != nil {
				return err
			}
		}
		generated = append(generated, time.Since(started))
	}
	row(fmt.Sprintf("wrappers for %d tools, both languages", total), generated, "≤ 300", "")

	snapshot, err := catalog.NewSnapshot(servers)
	if err != nil {
		return err
	}
	snapshot.Search(catalog.Query{}) // builds the index
	var searched times
	words := []string{"read a file", "create an issue", "query the metrics of a cluster", "take a screenshot", "list storage accounts"}
	for i := range runs * len(words) {
		started := time.Now()
		snapshot.Search(catalog.Query{Text: words[i%len(words)]})
		searched = append(searched, time.Since(started))
	}
	row(fmt.Sprintf("search over %d tools", total), searched, "≤ 0.5", "")
	return nil
}

// realServers reads tool lists, and reads them again under other names until
// there are enough tools.
func realServers(dir string) ([]catalog.Server, int, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, 0, err
	}
	var servers []catalog.Server
	total := 0
	for round := 0; total < manyTools; round++ {
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil {
				return nil, 0, err
			}
			var list struct {
				Tools []json.RawMessage `json:"tools"`
			}
			if err := json.Unmarshal(raw, &list); err != nil {
				return nil, 0, fmt.Errorf("reading %q: %w", path, err)
			}
			id := fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(path), ".json"), round)
			tools, _ := catalog.ParseTools(id, list.Tools[:min(len(list.Tools), manyTools-total)])
			total += len(tools)
			servers = append(servers, catalog.Server{ID: id, Tools: tools})
		}
	}
	return servers, total, nil
}
