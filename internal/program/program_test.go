package program_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/program"
)

func TestParseLanguage(t *testing.T) {
	for name, want := range map[string]string{
		"python": "python", "py": "python", "Python3": "python",
		"node": "node", "javascript": "node", "js": "node", "typescript": "node", " TS ": "node", "tsx": "node",
		"": "", "ruby": "", "bash": "", "java": "",
	} {
		got, known := program.ParseLanguage(name)
		if got != want || known != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", name, got, known, want)
		}
	}
}
