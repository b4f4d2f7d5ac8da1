package join_test

import (
	"os"
	"testing"

	"github.com/airlock-mcp/airlock/app/join"
)

// If both streams are the same file, the envelope starts on a new line. Otherwise, and if the
// output ends with a newline, the output does not change.
func TestTheEnvelopeIsALineOfItsOwn(t *testing.T) {
	_, one, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	_, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, test := range []struct {
		name           string
		stdout, stderr *os.File
		printed, want  string
	}{
		{"one place", one, one, "half", "half\n"},
		{"one place, a whole line", one, one, "whole\n", "whole\n"},
		{"one place, nothing", one, one, "", ""},
		{"two places", one, other, "half", "half"},
	} {
		t.Run(test.name, func(t *testing.T) {
			outcome := join.RunOutcome{Printed: test.printed}
			outcome.EndLine(test.stdout, test.stderr)
			if outcome.Printed != test.want {
				t.Errorf("got %q, want %q", outcome.Printed, test.want)
			}
		})
	}
}
