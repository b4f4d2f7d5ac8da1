package codegen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// corpus returns the servers of the corpus of real tool lists.
func corpus(t testing.TB) []catalog.Server {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "tools", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists in the corpus (%v)", err)
	}
	var servers []catalog.Server
	for _, file := range files {
		servers = append(servers, readServer(t, file))
	}
	return servers
}

// readServer reads a file that holds a tools/list answer; its name is the server's ID.
func readServer(t testing.TB, file string) catalog.Server {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	id := strings.TrimSuffix(filepath.Base(file), ".json")
	tools, warnings := catalog.ParseTools(id, list.Tools)
	for _, w := range warnings {
		t.Errorf("%s: got the warning %q, want none", file, w)
	}
	return catalog.Server{ID: id, Tools: tools}
}

// generate returns the tree of servers.
func generate(t testing.TB, servers []catalog.Server, lang codegen.Language) *codegen.Tree {
	t.Helper()
	tree, err := codegen.Generate(servers, lang)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// writeTree writes a tree below dir/servers.
func writeTree(t testing.TB, tree *codegen.Tree, dir string) {
	t.Helper()
	for _, f := range tree.Files {
		path := filepath.Join(dir, "servers", filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWholeCorpusInBothLanguages(t *testing.T) {
	servers := corpus(t)
	for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
		tree := generate(t, servers, lang)
		if tree.Tools != 730 || tree.Servers != 20 {
			t.Errorf("%s: got %d tools of %d servers, want 730 of 20", lang, tree.Tools, tree.Servers)
		}
		for _, w := range tree.Warnings {
			if !strings.Contains(w.Text, "shortened") || w.ServerID != "brave-search" {
				t.Errorf("%s: tool %q of %q %s", lang, w.Tool, w.ServerID, w.Text)
			}
		}
	}
}
