package nearest_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/nearest"
)

func TestWord(t *testing.T) {
	known := []string{"read_file", "write_file", "files", "crm"}
	tests := []struct{ name, word, want string }{
		{"a letter wrong", "reed_file", "read_file"},
		{"a letter missing", "fils", "files"},
		{"two letters swapped", "wirte_file", "write_file"},
		{"another case and separator", "Read-File", "read_file"},
		{"nothing near", "delete_everything", ""},
		{"nothing at all", "", ""},
		{"far too long", strings.Repeat("files", 100), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := nearest.Word(test.word, known); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got, want := nearest.Hint("fils", known), `; did you mean "files"?`; got != want {
		t.Errorf("hint: got %q, want %q", got, want)
	}
}
