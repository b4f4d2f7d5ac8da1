package codegen_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// installed returns the path of a file of an npm package.
func installed(file string) (path string, ok bool) {
	path, err := filepath.Abs(filepath.Join("testdata", "typecheck", "node_modules", filepath.FromSlash(file)))
	if err != nil {
		return "", false
	}
	_, err = os.Stat(path)
	return path, err == nil
}

// checker returns the path of an installed npm program. If it is missing, the test is
// skipped, or fails if all tests were requested.
func checker(t *testing.T, program string) string {
	t.Helper()
	path, ok := installed(program)
	const how = "the type checkers are not installed: run make setup"
	switch {
	case ok:
		return path
	case testenv.WantsSandboxes():
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

// expectClean runs a checker in dir and reports what it finds.
func expectClean(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "node", append([]string{program}, args...)...)
	run.Dir = dir
	output, err := run.CombinedOutput()
	if err != nil {
		const enough = 6000
		t.Errorf("%s: %v\n%s", filepath.Base(program), err, output[:min(len(output), enough)])
	}
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkTypeScript runs tsc --strict over every declaration of a tree, with the
// sandbox's own client, and over a program.
func checkTypeScript(t *testing.T, tree *codegen.Tree, program string) {
	t.Helper()
	tsc := checker(t, "typescript/bin/tsc")
	dir := t.TempDir()
	writeTree(t, tree, dir)
	client := filepath.Join(testenv.RepoRoot(t), "images", "node", "client")
	if err := os.CopyFS(filepath.Join(dir, "client"), os.DirFS(client)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "package.json"), `{"type": "module"}`)
	writeFile(t, filepath.Join(dir, "program.ts"), program)
	writeFile(t, filepath.Join(dir, "tsconfig.json"), `{
		"compilerOptions": {"strict": true, "noEmit": true, "module": "nodenext", "target": "es2022", "types": [], "skipLibCheck": false},
		"include": ["program.ts", "servers/**/*.d.ts", "client/*.d.ts"]
	}`)
	expectClean(t, dir, tsc, "--project", ".")
}

// checkPython compiles a tree and runs pyright over it and over a program.
func checkPython(t *testing.T, tree *codegen.Tree, program string) {
	t.Helper()
	pyright := checker(t, "pyright/index.js")
	dir := t.TempDir()
	writeTree(t, tree, dir)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "double", "python"))); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "program.py"), program)
	writeFile(t, filepath.Join(dir, "pyrightconfig.json"), `{
		"include": ["servers", "program.py"], "pythonVersion": "3.11", "typeCheckingMode": "standard",
		"reportUnnecessaryTypeIgnoreComment": "error"
	}`)
	expectClean(t, dir, pyright, "--project", ".")
	compile := exec.CommandContext(t.Context(), "python3", "-m", "compileall", "-q", "servers")
	compile.Dir = dir
	if output, err := compile.CombinedOutput(); err != nil {
		t.Errorf("compiling: %v\n%s", err, output)
	}
}

// typeScriptCalls returns a program with the calls. For each call that needs arguments, it
// adds one without, which must not type-check.
func typeScriptCalls(t testing.TB, calls []call, needs map[[2]string]bool) string {
	t.Helper()
	var imports, body strings.Builder
	modules := map[string]bool{}
	for _, c := range calls {
		if !modules[c.Module] {
			modules[c.Module] = true
			fmt.Fprintf(&imports, "import * as %s from \"./servers/%s/index.js\";\n", c.Module, c.Module)
		}
		fmt.Fprintf(&body, "(await %s.%s(%s)).data;\n", c.Module, c.Function, jsonText(t, c.Arguments))
		if needs[[2]string{c.Server, c.Tool}] {
			fmt.Fprintf(&body, "// @ts-expect-error\nawait %s.%s({});\n", c.Module, c.Function)
		}
	}
	return imports.String() + body.String()
}

// pythonCalls is typeScriptCalls for Python.
func pythonCalls(t testing.TB, calls []call, needs map[[2]string]bool) string {
	t.Helper()
	var imports, body strings.Builder
	modules := map[string]bool{}
	for _, c := range calls {
		if !modules[c.Module] {
			modules[c.Module] = true
			fmt.Fprintf(&imports, "import servers.%s as %s\n", c.Module, c.Module)
		}
		fmt.Fprintf(&body, "    (await %s.%s(%s)).data\n", c.Module, c.Function, pythonText(c.Arguments))
		if needs[[2]string{c.Server, c.Tool}] {
			fmt.Fprintf(&body, "    await %s.%s({})  # pyright: ignore\n", c.Module, c.Function)
		}
	}
	return imports.String() + "async def main():\n    pass\n" + body.String()
}

// needArguments returns the tools that have a required argument.
func needArguments(t testing.TB, servers []catalog.Server) map[[2]string]bool {
	t.Helper()
	needs := map[[2]string]bool{}
	for _, server := range servers {
		for _, tool := range server.Tools {
			var schema struct{ Required []string }
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			needs[[2]string{server.ID, tool.Name}] = len(schema.Required) > 0
		}
	}
	return needs
}

func jsonText(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pythonText writes a JSON value as a Python expression.
func pythonText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		var b bytes.Buffer
		for _, r := range v {
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		return `"` + b.String() + `"`
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = pythonText(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := []string{}
		for _, key := range sortedKeys(v) {
			parts = append(parts, pythonText(key)+": "+pythonText(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("no JSON value: %T", v))
}

func TestCorpusTypeChecks(t *testing.T) {
	servers := corpus(t)
	needs := needArguments(t, servers)
	t.Run("tsc", func(t *testing.T) {
		tree := generate(t, servers, codegen.Node)
		checkTypeScript(t, tree, typeScriptCalls(t, drawCalls(t, servers, tree, codegen.Node), needs))
	})
	t.Run("pyright", func(t *testing.T) {
		tree := generate(t, servers, codegen.Python)
		checkPython(t, tree, pythonCalls(t, drawCalls(t, servers, tree, codegen.Python), needs))
	})
}
