package codegen_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// call is one call of a wrapper, and what must arrive.
type call struct {
	Module    string         `json:"module"`
	Function  string         `json:"function"`
	File      string         `json:"file"` // without extension
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

var (
	pythonTool     = regexp.MustCompile(`(?m)^TOOL_NAME = "(.*)"$`)
	pythonFunction = regexp.MustCompile(`(?m)^async def (\w+)\(`)
	nodeTool       = regexp.MustCompile(`(?m)^/\*\* Tool "(.*?)" of server`)
	nodeFunction   = regexp.MustCompile(`(?m)^export declare function (\w+)\(`)
)

// wrappersOf finds the function of each tool by reading the tree, as a person would.
func wrappersOf(t testing.TB, tree *codegen.Tree, lang codegen.Language) map[string]map[string]call {
	t.Helper()
	tool, function, extension := pythonTool, pythonFunction, ".py"
	if lang == codegen.Node {
		tool, function, extension = nodeTool, nodeFunction, ".d.ts"
	}
	found := map[string]map[string]call{}
	for _, f := range tree.Files {
		name := tool.FindSubmatch(f.Data)
		if name == nil || !strings.HasSuffix(f.Path, extension) {
			continue
		}
		module := path.Dir(f.Path)
		if found[module] == nil {
			found[module] = map[string]call{}
		}
		found[module][string(name[1])] = call{
			Module: module, Tool: string(name[1]), Function: string(function.FindSubmatch(f.Data)[1]),
			File: strings.TrimSuffix(path.Base(f.Path), extension),
		}
	}
	return found
}

// drawCalls returns two calls for each tool: with every argument, and with some.
func drawCalls(t testing.TB, servers []catalog.Server, tree *codegen.Tree, lang codegen.Language) []call {
	t.Helper()
	wrappers := wrappersOf(t, tree, lang)
	var calls []call
	for _, server := range servers {
		for i, tool := range server.Tools {
			c, ok := wrappers[catalog.ModuleName(server.ID)][tool.Name]
			if !ok {
				t.Errorf("%s: no wrapper of tool %q of %q", lang, tool.Name, server.ID)
				continue
			}
			c.Server = server.ID
			for _, whole := range []bool{true, false} {
				c.Arguments = drawArguments(tool.InputSchema, uint64(i), whole)
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// runCalls makes calls outside a sandbox, with a client that records, and
// compares what the client was asked for.
func runCalls(t *testing.T, calls []call, tree *codegen.Tree, lang codegen.Language) {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, tree, dir)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "double", string(lang)))); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	program := map[codegen.Language][]string{
		codegen.Python: {"/usr/bin/python3", "-B", "call_all.py"},
		codegen.Node:   {"node", "call_all.mjs"},
	}[lang]
	run := exec.CommandContext(t.Context(), program[0], program[1:]...)
	run.Dir, run.Stdin, run.Stderr = dir, bytes.NewReader(input), os.Stderr
	output, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v", lang, err)
	}
	compareCalls(t, output, calls)
}

// compareCalls checks recorded calls, a line each: server, name, arguments, wrapper.
func compareCalls(t *testing.T, output []byte, calls []call) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, 16<<20)
	for i, c := range calls {
		if !lines.Scan() {
			t.Fatalf("got %d calls (%v), want %d", i, lines.Err(), len(calls))
		}
		var got []any
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{c.Server, c.Tool, any(c.Arguments), c.Function}, got); diff != "" {
			t.Errorf("%s of %s: arrived changed (-want +got):\n%s", c.Function, c.Module, diff)
		}
	}
	if lines.Scan() {
		t.Errorf("got more calls than %d", len(calls))
	}
}

func TestEveryWrapperDeliversNameAndArguments(t *testing.T) {
	servers := corpus(t)
	for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
		t.Run(string(lang), func(t *testing.T) {
			t.Parallel()
			tree := generate(t, servers, lang)
			calls := drawCalls(t, servers, tree, lang)
			if len(calls) != 2*730 {
				t.Errorf("got %d calls, want two for each of 730 tools", len(calls))
			}
			runCalls(t, calls, tree, lang)
		})
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
