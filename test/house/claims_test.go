package house_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// namedTest matches the name of a test or of a script in a document.
var namedTest = regexp.MustCompile("`(Test[A-Z]\\w*|[a-z_]+\\.txtar)`")

// Documents name the tests that prove their claims. Each of them exists, and SECURITY.md names at
// least one in each row about who is not trusted (issue 23).
func TestClaimsNameTheirTests(t *testing.T) {
	root := testenv.RepoRoot(t)
	exist := map[string]bool{}
	for _, f := range project(t) {
		if !strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, declared := range f.syntax.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Recv == nil {
				exist[function.Name.Name] = true
			}
		}
	}
	scripts, err := filepath.Glob(filepath.Join(root, "cmd", "*", "testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		exist[filepath.Base(script)] = true
	}
	named := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/design/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range namedTest.FindAllStringSubmatch(string(text), -1) {
				named++
				if !exist[name[1]] {
					t.Errorf("%s names %s, which does not exist", path, name[1])
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("the documents name %d tests, want at least 50", named)
	}
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, parties, found := strings.Cut(string(text), "| party |")
	parties, _, ended := strings.Cut(parties, "\n\n")
	if !found || !ended {
		t.Fatal("SECURITY.md has no table of who is not trusted")
	}
	for _, row := range strings.Split(parties, "\n")[2:] {
		if !namedTest.MatchString(row) && !strings.Contains(row, ".md") {
			t.Errorf("no test proves the row %.60s…", row)
		}
	}
}
