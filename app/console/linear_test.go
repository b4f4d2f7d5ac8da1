package console

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the cost of what a program prints or returns on a page of the console grows with its length and not faster.
func TestTextsOfPagesAreLinear(t *testing.T) {
	testenv.LinearTexts(t, testenv.Repetitions, 32<<10, map[string]func(string){
		"a result":  func(s string) { (&runText{Part: "result", Text: s}).shorten() },
		"an output": func(s string) { (&runText{Part: "stdout", Text: s}).shorten() },
		"a deep list": func(s string) {
			(&runText{Part: "result", Text: strings.Repeat("[", len(s)/2) + strings.Repeat("]", len(s)/2)}).shorten()
		},
		"a diff": func(s string) { diffLines([]byte(s)) },
	})
}
