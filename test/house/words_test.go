package house_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// coined are words that code, comments and documents once had in place of the
// field's terms, so that a search for the term did not find the place.
var coined = []struct{ word, instead string }{
	{`mourn\w*`, "log an unexpected end"},
	{`last ?gasp`, "grace"},
	{`take ?up`, "reserve"},
	{`put ?down`, "release"},
	{`give ?back`, "release"},
	{`folders?`, "directory"},
	{`whoever`, "the caller, the user, any process: the one that is meant"},
	{`(?:some|every)body`, "a person, every caller: the one that is meant"},
	{`goe?s? the way of`, "what is done"},
	{`of ours`, "the name of the part"},
	{`(know )?what we regret`, "known limitations"},
}

// quotedElsewhere are files that quote such a word from another program, with the
// text around it.
var quotedElsewhere = map[string]string{
	"broker/upstream/cause.go": "tarball, folder",
	"app/config/credential.go": `"folder"`,
}

func TestWordsAreTheFields(t *testing.T) {
	words := make([]string, len(coined))
	for i, c := range coined {
		words[i] = c.word
	}
	pattern := regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	root := testenv.RepoRoot(t)
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"*.go", "*.md", "*.py", "*.js", "*.mjs", "*.yaml", "*.txtar", "Makefile", ".ci", "build").Output()
	if err != nil {
		t.Skip("not a checkout of git:", err)
	}
	checked := 0
	for path := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		if strings.Contains(path, "testdata/") || path == "test/house/words_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue // removed, or a link
		}
		checked++
		if quote, ok := quotedElsewhere[path]; ok {
			text = bytes.ReplaceAll(text, []byte(quote), nil)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if word := pattern.Find(line); word != nil {
				t.Errorf("%s:%d: %q is not the field's term: write %s (or list it as quoted from another program)", path, i+1, word, insteadOf(string(word)))
			}
		}
	}
	if checked < 300 {
		t.Errorf("checked %d files: the rule finds next to nothing", checked)
	}
}

func insteadOf(word string) string {
	for _, c := range coined {
		if regexp.MustCompile(`(?i)^(?:` + c.word + `)$`).MatchString(word) {
			return `"` + c.instead + `"`
		}
	}
	return "another word"
}
