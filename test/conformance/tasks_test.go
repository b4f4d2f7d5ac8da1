package conformance

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The official client of the Tasks extension runs code in the background, answers the question of its task, and gets
// the result.
func TestTheClientOfTasks(t *testing.T) {
	dir, node := suites(t)
	url := overHTTP(t, configuration(t))
	for choice, want := range map[string]string{"approve this call": `"ok":true`, "deny": "ApprovalDenied"} {
		t.Run(choice, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), node, filepath.Join(dir, "clients", "tasks.mjs"), url,
				counts, choice)
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%v, %s", err, stderrOf(err))
			}
			var got struct {
				Result struct {
					StructuredContent struct {
						OK    bool
						Data  json.RawMessage
						Error struct{ Message string }
					}
				}
				Asked []string
			}
			understand(t, out, &got)
			if len(got.Asked) != 1 || !strings.Contains(got.Asked[0], "count") {
				t.Errorf("asked %q, want one question about the tool", got.Asked)
			}
			if got.Result.StructuredContent.OK != (choice != "deny") || !strings.Contains(string(out), want) {
				t.Errorf("got %s, want %s", out, want)
			}
		})
	}
}

// stderrOf returns what a program that failed has written to stderr.
func stderrOf(err error) string {
	if exit, failed := err.(*exec.ExitError); failed {
		return string(exit.Stderr)
	}
	return ""
}
