package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/nearest"
)

func TestValuesOfQuestions(t *testing.T) {
	tests := []struct{ name, question, want string }{
		{"none", "delete a file", ""},
		{"a quotation", `rename "summer photos" to archive`, "summer photos"},
		{"one in other marks", "send “see you soon” to the team", "see you soon"},
		{"a quotation without an end is none", `the 5" floppy disk`, "5"},
		{"an apostrophe is none", "don't show Ann's mail", "anns"},
		{"a path and an address", "copy /tmp/notes to ann@example.com", "tmp notes ann example com"},
		{"a name in the middle", "book a table in Paris", "paris"},
		{"not at the beginning", "Paris is where? Berlin too", ""},
		{"an abbreviation is not a name", "make a PDF", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, word := range splitQuestion(test.question) {
				if word.value {
					got = append(got, word.text)
				}
			}
			if !slices.Equal(got, strings.Fields(test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"delete", "delete", 0},
		{"delte", "delete", 1},
		{"deelte", "delete", 1},
		{"delate", "delete", 1},
		{"screnshto", "screenshot", 2},
		{"stock", "stalk", 2},
		{"kitten", "sitting", 3},
		{"", "abc", 3},
	}
	for _, test := range tests {
		if got := nearest.Distance([]byte(test.a), []byte(test.b), 2); got != test.want {
			t.Errorf("%q and %q: got %d mistakes, want %d", test.a, test.b, got, test.want)
		}
		if got := nearest.Distance([]byte(test.b), []byte(test.a), 2); got != test.want {
			t.Errorf("%q and %q: got %d mistakes, want %d", test.b, test.a, got, test.want)
		}
	}
}
