package house_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// maxColumns is the maximum width of a line. A tab counts as four columns.
const maxColumns = 120

func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// Lines of Go code fit into maxColumns (issue 25). Only the lines of a string literal of several lines and of
// struct tags can be longer, because they cannot be split without changing the value.
func TestLinesAreShort(t *testing.T) {
	for _, f := range project(t) {
		text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), f.path))
		if err != nil {
			t.Fatal(err)
		}
		unsplittable := map[int]bool{} // by line
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			field, isField := node.(*ast.Field)
			if isField && field.Tag != nil {
				unsplittable[f.set.Position(field.Tag.Pos()).Line] = true
			}
			if literal, ok := node.(*ast.BasicLit); ok && strings.Contains(literal.Value, "\n") {
				first, last := f.set.Position(literal.Pos()).Line, f.set.Position(literal.End()).Line
				for line := first; line <= last; line++ {
					unsplittable[line] = true
				}
			}
			return true
		})
		for i, line := range strings.Split(string(text), "\n") {
			if columns(line) > maxColumns && !unsplittable[i+1] && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d has %d columns, at most %d", f.path, i+1, columns(line), maxColumns)
			}
		}
	}
}

// written are the files that people write in other languages than Go. JSON cannot be wrapped, and a line of a
// table in a text file is one entry.
var written = []string{"*.js", "*.mjs", "*.cjs", "*.ts", "*.py", "*.pyi", "*.sh", "*.css", "*.html", "*.yaml", "*.yml",
	"*.toml", "*.cedar", "*.service", "Makefile", ".ci/*", "build/*", "packaging/debian/*",
	":!*/testdata/*", ":!*.go", ":!*.sum", ":!*.json", ":!*.min.js", ":!*.lock", ":!*.txt"}

// Lines of all other files that people write fit into maxColumns, too (issue 25).
func TestLinesOfOtherLanguagesAreShort(t *testing.T) {
	names := gitFiles(t, written...)
	if len(names) < 300 {
		t.Fatalf("git lists %d files: the rule would check next to nothing", len(names))
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), name))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if columns(line) > maxColumns {
				t.Errorf("%s:%d has %d columns, at most %d", name, i+1, columns(line), maxColumns)
			}
		}
	}
}

// unwrapped are lines of documents that cannot be split: rows of tables, addresses, pictures.
var unwrapped = regexp.MustCompile(`^\s*\||https?://|^\s*<|^\s*!\[`)

// Paragraphs of documents are wrapped, so that a change shows as a small difference.
func TestDocumentsAreWrapped(t *testing.T) {
	root := testenv.RepoRoot(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/design/*.md", "docs/hosts/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no documents (%v)", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fenced := false
			for i, line := range strings.Split(string(text), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "```") {
					fenced = !fenced
				}
				if !fenced && !strings.HasPrefix(line, "    ") && columns(line) > maxColumns &&
					!unwrapped.MatchString(line) {
					t.Errorf("%s:%d has %d columns, at most %d", path, i+1, columns(line), maxColumns)
				}
			}
		}
	}
}
