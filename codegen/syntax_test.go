package codegen_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// syntaxChecker is a running program that parses generated files and looks for
// anything in their syntax trees that no template put there.
type syntaxChecker struct {
	*testenv.Program
}

func startChecker(t testing.TB, program string, args ...string) *syntaxChecker {
	t.Helper()
	run := exec.Command(program, args...)
	run.Stderr = os.Stderr
	return &syntaxChecker{testenv.StartProgram(t, run)}
}

// startCheckers starts the checker of each language; that of Node is missing
// where TypeScript is not installed.
func startCheckers(t testing.TB) map[codegen.Language]*syntaxChecker {
	t.Helper()
	checkers := map[codegen.Language]*syntaxChecker{
		codegen.Python: startChecker(t, "python3", filepath.Join("testdata", "syntax", "check_python.py"),
			filepath.Join("template", "servers.py")),
	}
	if typescript, ok := installed("typescript/lib/typescript.js"); ok {
		checkers[codegen.Node] = startChecker(t, "node", filepath.Join("testdata", "syntax", "check_node.mjs"),
			typescript)
	}
	return checkers
}

// check returns what is wrong with a tree, or "".
func (c *syntaxChecker) check(t testing.TB, tree *codegen.Tree) string {
	t.Helper()
	files := map[string]string{}
	for _, f := range tree.Files {
		if !utf8.Valid(f.Data) || !utf8.ValidString(f.Path) {
			return f.Path + ": not UTF-8"
		}
		files[f.Path] = string(f.Data)
	}
	request, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Ask(request)
	if err != nil {
		t.Fatalf("the syntax checker ended: %v", err)
	}
	var problem string
	if err := json.Unmarshal(answer, &problem); err != nil {
		t.Fatal(err)
	}
	return problem
}

func TestSyntaxOfCorpusAndCases(t *testing.T) {
	checkers := startCheckers(t)
	inputs := map[string][]catalog.Server{"the corpus": corpus(t)}
	for _, dir := range cases(t) {
		inputs[filepath.Base(dir)] = readCase(t, dir)
	}
	for name, servers := range inputs {
		for lang, checker := range checkers {
			if problem := checker.check(t, generate(t, servers, lang)); problem != "" {
				t.Errorf("%s of %s: %s", lang, name, problem)
			}
		}
	}
}

// TestCheckersFindForeignCode proves that the checkers see what they look for.
func TestCheckersFindForeignCode(t *testing.T) {
	additions := map[codegen.Language]map[string][]string{
		codegen.Python: {
			"files/read.py": {"import os\n", "x = 1\n", "ReadInput.x = 2\n",
				"class A(TypedDict):\n    a: os.system('id')\n", "'''\u202e'''\n"},
			"files/__init__.py": {"import os\n", "_Server.__attach__(__name__, {}, {})\n"},
			"__init__.py":       {"import os\n"},
		},
		codegen.Node: {
			"files/read.d.ts": {"export type A = typeof import('fs');\n", "/** @type {x} */\nexport interface A {}\n",
				"// @ts-ignore\n"},
			"files/read.js": {"import 'fs';\n"},
			"files/index.js": {"console.log(1);\n",
				"export function f(args) { return $invoke($server, `a`, args, \"f\"); }\n"},
			"files/index.d.ts": {"export * from 'fs';\n"},
		},
	}
	for lang, checker := range startCheckers(t) {
		for path, codes := range additions[lang] {
			for _, code := range codes {
				tree := generate(t, []catalog.Server{{ID: "files",
					Tools: []catalog.Tool{{Name: "read", InputSchema: []byte(`{}`)}}}}, lang)
				for i := range tree.Files {
					if tree.Files[i].Path == path {
						tree.Files[i].Data = append(tree.Files[i].Data, code...)
					}
				}
				if checker.check(t, tree) == "" {
					t.Errorf("%s with %q in it: got no objection", path, code)
				}
			}
		}
	}
}

// FuzzGenerate gives arbitrary definitions to both languages. The output always
// parses, and its syntax tree holds what the templates put there.
func FuzzGenerate(f *testing.F) {
	for _, dir := range cases(f) {
		for _, server := range readCase(f, dir) {
			for _, tool := range server.Tools {
				f.Add(server.ID, tool.Name, tool.Title, tool.Description, []byte(tool.InputSchema),
					[]byte(tool.OutputSchema))
			}
			f.Add("crm", "", "", server.Problem, []byte{}, []byte{})
		}
	}
	checkers := startCheckers(f)
	f.Fuzz(func(t *testing.T, server, name, title, description string, input, output []byte) {
		if server == "" {
			return
		}
		tool := catalog.Tool{Name: name, Title: title, Description: description, InputSchema: input,
			Digest: canon.Digest(input)}
		if len(output) > 0 {
			tool.OutputSchema = output
		}
		neighbour := catalog.Tool{Name: "read", InputSchema: []byte(`{}`)}
		servers := []catalog.Server{{ID: server, Tools: []catalog.Tool{tool, neighbour}}}
		if missing := server + "!"; description != "" {
			servers = append(servers, catalog.Server{ID: missing, Problem: description})
		}
		for lang, checker := range checkers {
			tree := generate(t, servers, lang)
			if problem := checker.check(t, tree); problem != "" {
				t.Errorf("%s: %s", lang, problem)
			}
			for _, file := range tree.Files {
				if name := filepath.Base(file.Path); len(name) > 100 || strings.ContainsAny(file.Path, "\\:") {
					t.Errorf("got the path %q", file.Path)
				}
			}
		}
	})
}
