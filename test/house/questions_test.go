package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

var (
	linkedPath = regexp.MustCompile(`\]\(([^)#]+)`)
	functionIn = regexp.MustCompile("`(\\w+)` in \\[[^\\]]*\\]\\(([^)]+)\\)")
)

// The questions of newcomers in docs/architecture.md are answered with at most three files each, which exist and have
// the functions that the answer names (issue 25).
func TestQuestionsHaveAnswers(t *testing.T) {
	docs := filepath.Join(testenv.RepoRoot(t), "docs")
	page, err := os.ReadFile(filepath.Join(docs, "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for line := range strings.Lines(string(page)) {
		question, answer, _ := strings.Cut(strings.Trim(line, "| \n"), " | ")
		if !strings.HasSuffix(question, "?") {
			continue
		}
		asked++
		var files []string
		for _, link := range linkedPath.FindAllStringSubmatch(answer, -1) {
			if _, err := os.Stat(filepath.Join(docs, filepath.FromSlash(link[1]))); err != nil {
				t.Errorf("%q: %v", question, err)
			}
			if !slices.Contains(files, link[1]) {
				files = append(files, link[1])
			}
		}
		if len(files) == 0 || len(files) > 3 {
			t.Errorf("%q is answered with the files %q, want one to three", question, files)
		}
		for _, named := range functionIn.FindAllStringSubmatch(answer, -1) {
			source, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(named[2])))
			if err != nil || !regexp.MustCompile(`(?m)^func .*\b`+named[1]+`\(`).Match(source) {
				t.Errorf("%q: %s has no function %s (%v)", question, named[2], named[1], err)
			}
		}
	}
	if asked < 15 {
		t.Errorf("docs/architecture.md answers %d questions, want at least 15", asked)
	}
}
