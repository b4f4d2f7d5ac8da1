package catalog

import (
	"strings"
	"testing"
)

// The work that a question makes depends on its terms: no question has many.
func TestTermsOfAQuestionAreBounded(t *testing.T) {
	x := newIndex([]document{{fields: fields{fieldName: {"read", "file"}}}})
	for name, question := range map[string]string{
		"one word again and again": strings.Repeat("read ", 1600),
		"different words":          strings.Repeat("delete remove create open send list find show get put ", 140),
		"letters alone":            strings.Repeat("a b c d e f g h i j ", 400),
		"Chinese":                  strings.Repeat("今天天气", 680),
		"stop words":               strings.Repeat("the of and to a ", 500),
	} {
		if got := len(x.asked(question)); got > 2*maxQueryWords {
			t.Errorf("%s: got %d terms, want at most %d", name, got, 2*maxQueryWords)
		}
	}
}
