package catalog

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the cost of a search text and of a description grows with its length and not faster.
func TestSearchTextsAreLinear(t *testing.T) {
	units := append([]string{"aB", "A", "a1", "日本 ", "a\u0301", "“a ", "'a", "a.b/c@", "ab. Cd "},
		testenv.Repetitions...)
	testenv.LinearTexts(t, units, 32<<10, map[string]func(string){
		"Words":         func(s string) { Words(s) },
		"splitQuestion": func(s string) { splitQuestion(s) },
		"shorten":       func(s string) { shorten(s, len(s)/2) },
		"spelling":      func(s string) { spelling(s) },
		"Quote":         func(s string) { Quote(s) },
	})
}
