package runsc_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// TestUnmountingInitialisesNoKernel holds build/gvisor/runsc/unmount to its place
// in the order in which Go initialises packages: every sandbox starts that program.
func TestUnmountingInitialisesNoKernel(t *testing.T) {
	cases := []struct {
		name, says string
		initialise bool
		args       []string
	}{
		{"unmounts", "no such file or directory", false, []string{"umount", "--sync-fd=0", "/not/there"}},
		{"other arguments are gVisor's", "umount", true, []string{"umount"}},
	}
	runsc := testenv.Sandbox(t).Runsc
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(runsc, c.args...)
			cmd.Env = []string{"GODEBUG=inittrace=1"} // runtime: a line for each package
			cmd.Stdin = strings.NewReader("x")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("got error %v and %q, want a failure that says %q", err, out, c.says)
			}
			if got := strings.Contains(string(out),
				"init gvisor.dev/gvisor/pkg/sentry/syscalls/linux "); got != c.initialise ||
				!strings.Contains(string(out), "init runtime ") {
				t.Errorf("kernel initialised: got %v, want %v, in\n%s", got, c.initialise, out)
			}
		})
	}
}

// TestUnmountingWaitsForItsWord checks that nothing is unmounted if the kernel ends first.
func TestUnmountingWaitsForItsWord(t *testing.T) {
	cmd := exec.Command(testenv.Sandbox(t).Runsc, "umount", "--sync-fd=0", "/not/there")
	out, err := cmd.CombinedOutput() // its standard input ends at once
	if want := "broken pipe"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("got error %v and %q, want a failure that says %q", err, out, want)
	}
}
