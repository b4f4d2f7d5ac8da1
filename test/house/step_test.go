package house_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// step runs build/step with a shell command and returns what it printed and its exit status.
func step(t *testing.T, command string) (string, int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(testenv.RepoRoot(t), "build", "step"), "counting", "sh",
		"-c", command).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

// TestStepHandsOnHowItsCommandEnded runs build/step, which shows a command's output only when it fails.
func TestStepHandsOnHowItsCommandEnded(t *testing.T) {
	t.Parallel()
	const wrong = "error: counting went wrong; its output is above\n"
	tests := []struct {
		name, command, want string
		status              int
	}{
		{"a command that succeeds says nothing", "echo one", "", 0},
		{"a command that fails is shown", "echo one; exit 7", "one\n" + wrong, 7},
		{"a command that is killed", "kill -9 $$", wrong, 137},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, status := step(t, test.command)
			// A busy machine takes more than a second, which adds progress lines.
			got = regexp.MustCompile(`(?m)^(==>|    ).*\n`).ReplaceAllString(got, "")
			if got != test.want || status != test.status {
				t.Errorf("got %q and status %d, want %q and status %d", got, status, test.want, test.status)
			}
		})
	}
}

// TestStepIsNotConfusedByACommandThatEndsAsALineIsDue ends commands within a few
// milliseconds of the first line, which comes after one second.
func TestStepIsNotConfusedByACommandThatEndsAsALineIsDue(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			want := i % 2 * 5
			out, status := step(t, fmt.Sprintf("sleep 0.%04d; exit %d", 9900+i/2, want))
			if status != want || want == 0 && strings.Contains(out, "went wrong") {
				t.Errorf("a command that ended with %d: got %q and status %d", want, out, status)
			}
		})
	}
	group.Wait()
}
