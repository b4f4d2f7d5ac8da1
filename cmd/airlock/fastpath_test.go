package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// started is how a process was: what it printed, how it ended, and which packages were
// initialised until then.
type started struct {
	stdout, stderr string
	code           int
	packages       map[string]bool
}

// initialised is a line that Go's runtime writes to stderr for each package, see
// GODEBUG=inittrace=1 in the documentation of package runtime.
var initialised = regexp.MustCompile(`(?m)^init (\S+) @.*\n`)

// start runs this test's own program, which is airlock under any name but its own.
func start(t *testing.T, name string, args ...string) started {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return traced(t, &exec.Cmd{Path: self, Args: append([]string{name}, args...)})
}

func traced(t *testing.T, cmd *exec.Cmd) started {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	s := started{stdout.String(), initialised.ReplaceAllString(stderr.String(), ""), cmd.ProcessState.ExitCode(), map[string]bool{}}
	for _, line := range initialised.FindAllStringSubmatch(stderr.String(), -1) {
		s.packages[line[1]] = true
	}
	return s
}

// fast reports whether the process ended before what is large was initialised.
func (s started) fast() bool { return !s.packages["github.com/alecthomas/kong"] }

// What the fast path prints is what the rest of the program prints, which has no other
// command line that it could end.
func TestTheVersionIsPrintedBeforeMain(t *testing.T) {
	for _, args := range []string{"version", "--version"} {
		got, want := start(t, "airlock", args), start(t, "/usr/bin/airlock", "version", "--json=false")
		if !got.fast() || want.fast() {
			t.Errorf("%s: ended before main: %t, and %t where it should not", args, got.fast(), want.fast())
		}
		if got.stdout != want.stdout || got.code != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "airlock ") {
			t.Errorf("%s: got %d, %q, %q, want %q", args, got.code, got.stdout, got.stderr, want.stdout)
		}
	}
}
