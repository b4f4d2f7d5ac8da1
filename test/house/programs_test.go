package house_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// program matches a program in a document.
var program = regexp.MustCompile("(?ms)^```(python|js)\n(.*?)^```$")

// compilePython compiles the programs of a JSON object, by their names, as the guest compiles them.
const compilePython = `
import ast, json, sys
for name, text in json.load(sys.stdin).items():
    try:
        compile(text, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        print(f"{name}, line {error.lineno}: {error.msg}")
`

// The programs in documents compile (issue 27).
func TestProgramsInDocumentsCompile(t *testing.T) {
	for _, interpreter := range []string{"python3", "node"} {
		if _, err := exec.LookPath(interpreter); err != nil {
			t.Skipf("%s is not installed", interpreter)
		}
	}
	pages, err := filepath.Glob(filepath.Join(testenv.RepoRoot(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	python, node, scratch := map[string]string{}, 0, t.TempDir()
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, found := range program.FindAllSubmatch(page, -1) {
			name := fmt.Sprintf("%s, program %d", filepath.Base(path), i+1)
			if string(found[1]) == "python" {
				python[name] = string(found[2])
				continue
			}
			node++
			file := filepath.Join(scratch, fmt.Sprintf("%d.mjs", node))
			if err := os.WriteFile(file, found[2], 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "node", "--check", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
	if len(python) < 8 || node < 4 {
		t.Fatalf("found %d programs in Python and %d in JavaScript: the test checks next to nothing", len(python), node)
	}
	programs, err := json.Marshal(python)
	if err != nil {
		t.Fatal(err)
	}
	compiler := exec.CommandContext(t.Context(), "python3", "-c", compilePython)
	compiler.Stdin = strings.NewReader(string(programs))
	if out, err := compiler.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
