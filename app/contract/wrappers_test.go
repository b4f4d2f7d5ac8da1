package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/app/contract"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// servers returns what a catalog knows about the servers of the cases.
func servers(t *testing.T) []catalog.Server {
	t.Helper()
	raw := map[string][]json.RawMessage{}
	for _, tool := range contract.Tools() {
		definition, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		raw[tool.Server] = append(raw[tool.Server], definition)
	}
	list := []catalog.Server{{ID: contract.MissingServer, Problem: "it did not start"}}
	for id, definitions := range raw {
		tools, warnings := catalog.ParseTools(id, definitions)
		if len(warnings) > 0 {
			t.Fatalf("server %s: got warnings %q, want none", id, warnings)
		}
		list = append(list, catalog.Server{ID: id, Tools: tools})
	}
	return list
}

// wrappers writes the wrapper tree of the cases' servers and returns its directory.
func wrappers(t *testing.T, language string) string {
	t.Helper()
	tree, err := codegen.Generate(servers(t), codegen.Language(language))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, file := range tree.Files {
		path := filepath.Join(dir, filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
