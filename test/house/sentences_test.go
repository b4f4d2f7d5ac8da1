package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// construction is a sentence pattern that is correct English, but rare in the documentation of Go and of the
// libraries we use. A reader has to read such a sentence twice.
type construction struct {
	name    string
	pattern *regexp.Regexp
	most    float64 // allowed occurrences per 1,000 lines of comments and documents
}

// mostTogether is the allowed number of all constructions per 1,000 lines.
const mostTogether = 15

// The limits are three times the highest rate of age, go-sdk, runsc and tailscale, and 0.15 if they do not use a
// construction, which is some five sentences.
var constructions = []construction{
	{`"where it" for "if it"`, regexp.MustCompile(`\bwhere ` +
		`(?:it|the|there|that|this|a|an|no|one|they|nothing|all|both|[a-z]+ (?:is|are|has|have|may|can|was))\b`), 13.8},
	{`"says" for "returns" or "reports"`, regexp.MustCompile(`\bsa(?:ys?|id)\b`), 3.6},
	{`"tells" for "reports"`, regexp.MustCompile(`\b(?:tells?|told)\b`), 6.9},
	{`"What …" or "Who …" as the subject`, regexp.MustCompile(
		`(?:^|[.;:,] )(?:[Ww]hat|[Ww]ho|[Ww]hoever|[Ww]hatever) ` +
			`(?:is|was|has|had|it|they|the|a|an|no|comes|came|can|cannot|does|would|may|[a-z]+s) `), 0.9},
	{`"is no X" for "is not a X"`, regexp.MustCompile(
		`\b(?:is|are|was|were) no (?:longer|more|such|other|need|way|limit|\w+ for)?[a-z]+`), 5.1},
	{`"has X do"`, regexp.MustCompile(
		`\bha(?:s|ve|d) (?:the|a|an|it|them|its|each|all|every) (?:[a-z]+ )?(?:be |[a-z]+ed\b)`), 2.1},
	{`"of its own" for "separate"`, regexp.MustCompile(`\bof (?:its|their|his|one's|Airlock's) own\b`), 0.3},
	{`"there is none"`, regexp.MustCompile(`\b(?:is|are) none\b`), 1.8},
	{`"what becomes of" for "the result of"`, regexp.MustCompile(`\b(?:bec?[ao]mes?|comes?|came) of\b`), 0.15},
	{`"stands" or "lies" for "is"`, regexp.MustCompile(`\b(?:stands?|stood|lies|lay) ` +
		`(?:in|for|beside|behind|before|here|there|at|under|on|within|below|above)\b`), 0.15},
	{`"no more than" for "at most"`, regexp.MustCompile(`\bno more than\b`), 0.3},
	{`"heed", "room for"`, regexp.MustCompile(
		`\b(?:heed\w*|the room (?:for|that)|has room|'s word|its word|whose word|own word)\b`), 0.15},
	{`"X is Y's"`, regexp.MustCompile(`\b(?:is|are) (?:the )?\w+'s(?: own)?(?: to \w+)?[.,;:)]`), 0.15},
}

var goOrJSComment = regexp.MustCompile(`^\s*(?://|/?\*+) ?(.*)|\s// (.*)$`)
var pyComment = regexp.MustCompile(`^\s*#[^!] ?(.*)|\s# (.*)$`)

// prose returns the lines of comments and documentation in a file.
func prose(path, text string) []string {
	var lines []string
	inDoc, inFence := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		var found string
		switch filepath.Ext(path) {
		case ".md":
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				inFence = !inFence
			} else if !inFence {
				found = strings.TrimSpace(line)
			}
		case ".py":
			if m := pyComment.FindStringSubmatch(line); m != nil {
				found = m[1] + m[2]
			} else if inDoc || strings.Contains(line, `"""`) {
				found = strings.TrimSpace(line)
			}
			if strings.Count(line, `"""`) == 1 {
				inDoc = !inDoc
			}
		default:
			if m := goOrJSComment.FindStringSubmatch(line); m != nil {
				found = m[1] + m[2]
			}
		}
		if found != "" {
			lines = append(lines, found)
		}
	}
	return lines
}

// Comments and documents use the sentence patterns of the field.
func TestSentencesAreTheFields(t *testing.T) {
	counts, lines := make([]int, len(constructions)), 0
	root := testenv.RepoRoot(t)
	for _, path := range gitFiles(t, "*.go", "*.md", "*.py", "*.js", "*.mjs", "*.ts", "*.cedar") {
		if strings.Contains(path, "testdata/") || path == "test/house/sentences_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue // removed, or a link
		}
		for _, line := range prose(path, string(text)) {
			lines++
			for i, c := range constructions {
				counts[i] += len(c.pattern.FindAllString(line, -1))
			}
		}
	}
	if lines < 10_000 {
		t.Fatalf("found %d lines of comments and documents: the check covers almost nothing", lines)
	}
	sum := 0
	for i, c := range constructions {
		sum += counts[i]
		if rate := 1000 * float64(counts[i]) / float64(lines); rate > c.most {
			t.Errorf("%s: %.1f per 1,000 lines, at most %.1f: rewrite the sentences", c.name, rate, c.most)
		}
	}
	if rate := 1000 * float64(sum) / float64(lines); rate > mostTogether {
		t.Errorf("all constructions together: %.1f per 1,000 lines, at most %d", rate, mostTogether)
	}
}
