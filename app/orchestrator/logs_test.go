package orchestrator

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

func TestLogsAreCutOnACharacterAfterRedaction(t *testing.T) {
	const limit = 200
	secret := "ghp_" + strings.Repeat("A1b2C3d4E5", 4)[:36]
	tests := []struct {
		name, text string
		total      int64 // of the stream, when more was written than kept
		want       string
		missing    string
	}{
		{"short text is complete", "hello\n", 0, "hello\n", ""},
		{"text at the limit is complete", strings.Repeat("x", limit), 0, strings.Repeat("x", limit), ""},
		{"longer text shows how much was cut", strings.Repeat("x", 300), 0, "\n<TRUNCATED 139 bytes>\n", ""},
		{"what was not even kept counts too", strings.Repeat("x", 300), 1000, "\n<TRUNCATED 839 bytes>\n", ""},
		{"no character is halved", strings.Repeat("é", 150), 0, "é\n<TRUNCATED ", ""},
		{"a secret across the cut is gone as a whole",
			strings.Repeat("x", 140) + " " + secret + " " + strings.Repeat("y", 100), 0, "<TRUNCATED", "ghp_"},
		{"bytes that are not UTF-8 are shown as such", "a\xffb", 0, "a\uFFFDb", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &run{plan: plan{redactor: redact.New(), limits: runner.Limits{Stdout: limit}}}
			output := runner.Output{Head: []byte(test.text), Total: max(test.total, int64(len(test.text)))}
			got := r.print(logs{stdout: output}).Stdout
			if !strings.Contains(got, test.want) || test.missing != "" && strings.Contains(got, test.missing) {
				t.Errorf("got %q, want it to contain %q and not %q", got, test.want, test.missing)
			}
			if len(got) > limit || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid UTF-8: %v", len(got), utf8.ValidString(got))
			}
		})
	}
}

func TestNothingFitsALimitOfZero(t *testing.T) {
	if got, missing := printable("x", runner.Output{Head: []byte("x"), Total: 1}, 0); got != "" || missing != 1 {
		t.Errorf("got %q and %d bytes missing, want nothing and 1", got, missing)
	}
}

func FuzzLastJSON(f *testing.F) {
	f.Add([]byte("{\"a\":1}\nnot json\n\n"))
	f.Fuzz(func(t *testing.T, tail []byte) {
		result := succeeded(logs{lastLines: tail}.lastJSON())
		if _, line := sealed(t, result); len(line) > MaxEnvelope {
			t.Errorf("the line has %d bytes", len(line))
		}
	})
}
