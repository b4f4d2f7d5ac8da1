package codegen_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/codegen"
)

// runProgram runs a program of testdata/use outside a sandbox, beside the tree
// of a case and a client that records. The programs end with an error where
// something is not as they expect.
func runProgram(t *testing.T, name, testCase string, lang codegen.Language, command ...string) {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, generate(t, readCase(t, filepath.Join("testdata", testCase)), lang), dir)
	for _, directory := range []string{filepath.Join("testdata", "double", string(lang)),
		filepath.Join("testdata", "use")} {
		if err := os.CopyFS(dir, os.DirFS(directory)); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), command[0], append(command[1:], name)...)
	run.Dir = dir
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestUse(t *testing.T) {
	for _, tt := range []struct{ name, program, testCase string }{
		{"every way to import and browse", "imports", "plain"},
		{"no server at all", "no_servers", "servers-none"},
		{"a server that is missing", "missing_server", "server-missing"},
		{"servers named like modules", "odd_servers", "servers-that-meet"},
		{"tools named like everything", "odd_tools", "names-reserved"},
		{"names of 128 bytes", "long_names", "names-of-128-bytes"},
		{"names that differ in case", "case_of_names", "names-that-meet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runProgram(t, tt.program+".py", tt.testCase, codegen.Python, "python3", "-B")
			runProgram(t, tt.program+".mjs", tt.testCase, codegen.Node, "node")
		})
	}
}
