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
var namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*|[a-z_]+\\.txtar)`")

// Documents name the tests that prove their claims. Each name is that of one test. SECURITY.md names at least one in
// each row about who is not trusted, and in each item about connections and the log. docs/serving.md names one in each
// section and in each row about a limit of one client, docs/attacks.md for all of its rows (issue 23).
func TestClaimsNameTheirTests(t *testing.T) {
	root := testenv.RepoRoot(t)
	exist := map[string][]string{} // the directories with the test
	for _, f := range project(t) {
		if !strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, declared := range f.syntax.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Recv == nil {
				name := function.Name.Name
				exist[name] = append(exist[name], f.directory)
			}
		}
	}
	scripts, err := filepath.Glob(filepath.Join(root, "cmd", "*", "testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		name := filepath.Base(script)
		exist[name] = append(exist[name], filepath.Dir(script))
	}
	named := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/design/*.md", "docs/hosts/*.md"} {
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
				switch directories := exist[name[1]]; len(directories) {
				case 0:
					t.Errorf("%s names %s, which does not exist", path, name[1])
				case 1:
				default:
					t.Errorf("%s names %s, which could be that of each of %q", path, name[1], directories)
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("the documents name %d tests, want at least 50", named)
	}
	text := document(t, "SECURITY.md")
	_, parties, found := strings.Cut(text, "| party |")
	parties, _, ended := strings.Cut(parties, "\n\n")
	if !found || !ended {
		t.Fatal("SECURITY.md has no table of who is not trusted")
	}
	claims := strings.Split(parties, "\n")[2:]
	for _, section := range []string{"## Connections to other machines", "## What stays"} {
		_, rest, found := strings.Cut(text, section+"\n")
		rest, _, _ = strings.Cut(rest, "\n## ")
		if !found {
			t.Fatalf("SECURITY.md has no section %q", section)
		}
		items := strings.Split(rest, "\n- ")[1:]
		if section == "## What stays" { // its items are those of one claim
			items = strings.Split(strings.TrimSpace(rest), "\n\n")[:1]
		}
		claims = append(claims, items...)
	}
	claims = append(claims, claimsOf(t, "docs/serving.md")...)
	attacks, _, _ := strings.Cut(document(t, "docs/attacks.md"), "\n## ") // its rows are those of the tests
	claims = append(claims, attacks)
	for _, claim := range claims {
		if !namedTest.MatchString(claim) {
			t.Errorf("no test proves the claim %.60s…", claim)
		}
	}
	if len(claims) < 35 {
		t.Errorf("found %d claims, want at least 35", len(claims))
	}
}

// claimsOf returns the sections of a document, and the rows of its tables about limits.
func claimsOf(t *testing.T, path string) []string {
	t.Helper()
	var claims []string
	sections := regexp.MustCompile(`(?m)^#{1,3} `).Split(document(t, path), -1)[1:]
	for _, section := range sections {
		claims = append(claims, section)
		if _, rows, found := strings.Cut(section, "| if it is exceeded |\n"); found {
			rows, _, _ = strings.Cut(rows, "\n\n")
			claims = append(claims, strings.Split(rows, "\n")[1:]...)
		}
	}
	return claims
}

// document returns the text of a file of the repository.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
