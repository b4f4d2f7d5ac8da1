package house_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// link matches the target of a Markdown link that is not a URL: a file, a heading in it, or
// a heading of the same page.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	root := testenv.RepoRoot(t)
	files, headings := 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDirectory(path, rel, entry.Name())
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			target := path
			if match[1] != "" {
				files++
				target = filepath.Join(filepath.Dir(path), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, match[1])
				continue
			}
			if match[2] == "" || filepath.Ext(target) != ".md" {
				continue
			}
			headings++
			if there := anchors(t, target); !there[match[2]] {
				t.Errorf("%s links to the heading #%s of %s, which is not there", path, match[2], target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 || headings < 20 {
		t.Errorf("found %d links to files and %d to headings: the rule checks next to nothing", files, headings)
	}
}

// notInAnchor are the characters of a heading that its anchor leaves out, as
// GitHub makes it.
var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchors returns what a link to a heading of the Markdown file may name.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	code := false
	for line := range strings.Lines(string(text)) {
		code = code != strings.HasPrefix(line, "```")
		title := strings.TrimLeft(line, "#")
		if code || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		found[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return found
}
