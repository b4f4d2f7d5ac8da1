package codegen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/golden"
)

// cases returns the directories of testdata that hold a case: in/ has a file of
// tools, shaped like a tools/list answer, for each server, or ID.problem.txt for
// a missing one; want/ has the trees and the warnings.
func cases(t testing.TB) []string {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "in"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases in testdata (%v)", err)
	}
	for i := range inputs {
		inputs[i] = filepath.Dir(inputs[i])
	}
	return inputs
}

// readCase reads the servers of a case as they are: package catalog would
// refuse some of them, and the wrappers must hold without it.
func readCase(t testing.TB, dir string) []catalog.Server {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	var servers []catalog.Server
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, "in", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if id, missing := strings.CutSuffix(file.Name(), ".problem.txt"); missing {
			servers = append(servers, catalog.Server{ID: id, Problem: strings.TrimSuffix(string(data), "\n")})
			continue
		}
		id, isList := strings.CutSuffix(file.Name(), ".json")
		if !isList {
			continue
		}
		servers = append(servers, catalog.Server{ID: id, Tools: readTools(t, id, data)})
	}
	return servers
}

func readTools(t testing.TB, serverID string, data []byte) []catalog.Tool {
	t.Helper()
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	tools := make([]catalog.Tool, len(list.Tools))
	for i, raw := range list.Tools {
		if err := json.Unmarshal(raw, &tools[i]); err != nil {
			t.Fatal(err)
		}
		tools[i].ServerID, tools[i].Raw, tools[i].Digest = serverID, raw, canon.Digest(raw)
	}
	return tools
}

// aboutServers reports whether a case covers the files beside the servers' directories. In
// all other cases these files are the same.
func aboutServers(dir string) bool {
	name := filepath.Base(dir)
	return name == "plain" || name == "description-hostile" || strings.HasPrefix(name, "server")
}

func TestCases(t *testing.T) {
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			servers := readCase(t, dir)
			want := map[string][]byte{}
			var warnings strings.Builder
			for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
				tree := generate(t, servers, lang)
				for _, f := range tree.Files {
					if !strings.Contains(f.Path, "/") && !aboutServers(dir) {
						continue
					}
					want[string(lang)+"/"+f.Path] = f.Data
				}
				for _, w := range tree.Warnings {
					warnings.WriteString(string(lang) + ": tool " + jsonText(t, w.Tool) + " of " + w.ServerID + " " +
						w.Text + "\n")
				}
			}
			if warnings.Len() > 0 {
				want["warnings.txt"] = []byte(warnings.String())
			}
			golden.CheckDir(t, want, filepath.Join(dir, "want"))
		})
	}
}

// TestCasesTypeCheck checks what the cases produce, all of them at once: their
// servers become those of one tree.
func TestCasesTypeCheck(t *testing.T) {
	var servers []catalog.Server
	for _, dir := range cases(t) {
		for _, server := range readCase(t, dir) {
			server.ID = filepath.Base(dir) + " " + server.ID
			servers = append(servers, server)
		}
	}
	t.Run("tsc", func(t *testing.T) {
		checkTypeScript(t, generate(t, servers, codegen.Node), "export {};\n")
	})
	t.Run("pyright", func(t *testing.T) {
		checkPython(t, generate(t, servers, codegen.Python), "")
	})
}
