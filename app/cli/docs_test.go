package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

var (
	// code matches a code block or a code span of a document.
	code = regexp.MustCompile("(?ms)^```[a-z]*\n.*?^```|`[^`\n]+`")
	// typed matches a command of Airlock with the word after it.
	typed = regexp.MustCompile("(?m)(?:^|[`$;&|(] ?|sudo )airlock ([a-z]+)(?: ([a-z]+))?")
)

// The commands in documents exist, including the verbs after a noun (issue 27).
func TestCommandsInDocumentsExist(t *testing.T) {
	whole, _ := newWholeParser(io.Discard, io.Discard)
	find := func(parent *kong.Node, name string) *kong.Node {
		for _, child := range parent.Children {
			if child.Name == name {
				return child
			}
		}
		return nil
	}
	found := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/hosts/*.md"} {
		pages, err := filepath.Glob(filepath.Join(testenv.RepoRoot(t), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range code.FindAll(text, -1) {
				for _, command := range typed.FindAllStringSubmatch(string(block), -1) {
					found++
					noun := find(whole.Model.Node, command[1])
					if noun == nil {
						t.Errorf("%s: %q: there is no command %s", page, block, command[1])
						continue
					}
					hasVerbs := false
					for _, child := range noun.Children {
						hasVerbs = hasVerbs || child.Type == kong.CommandNode
					}
					if hasVerbs && command[2] != "" && find(noun, command[2]) == nil {
						t.Errorf("%s: %q: %s has no verb %s", page, block, command[1], command[2])
					}
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("found %d commands: the test checks next to nothing", found)
	}
}
