package browser

import (
	"os"
	"strings"
	"testing"
)

// TestDriverEndsWithItsTest starts a browser as a test does that fails at once.
func TestDriverEndsWithItsTest(t *testing.T) {
	command := driver(t)
	command.Stdin, command.Stderr = strings.NewReader(
		`{"step":"profile"}`+"\n"+`{"step":"open","address":"about:blank"}`+"\n"), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(out), "\n"); got != 2 {
		t.Errorf("got %d answers, want 2:\n%s", got, out)
	}
}
