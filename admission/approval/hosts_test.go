package approval_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
)

// Processes of any of several hosts cannot approve questions of any host; a person can.
func TestNothingOfAnyJoinedHostCanApprove(t *testing.T) {
	s := newScene(t)
	desk, err := approval.OpenDesk(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { desk.Close() })
	s.desk, s.dir = desk, desk.Dir()
	inHost := func(command string) {
		fmt.Fprintln(s.hostIn, "setsid -f script -qec \""+command+"\" /dev/null </dev/null >/dev/null 2>&1 &")
	}
	byPerson := func(command string) { s.say(t, s.person, command) }
	if got := s.try(t, byPerson); got != "taken" {
		t.Skipf("a person cannot approve here at all: %s", got)
	}
	for _, session := range []string{question().SessionID, "ses_of_another_host"} {
		leave := desk.AddHost(session, s.host.Process.Pid)
		if got := s.try(t, inHost); !strings.Contains(got, "agent's own host") {
			t.Errorf("joined as %s: got %q from within the host, want that it cannot approve", session, got)
		}
		if got := s.try(t, byPerson); got != "taken" {
			t.Errorf("joined as %s: got %q from a person, want that it is taken", session, got)
		}
		leave()
	}
}

// A host that has ended still matters for the questions of its session.
func TestAHostThatHasEnded(t *testing.T) {
	s := newScene(t)
	desk, err := approval.OpenDesk(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { desk.Close() })
	s.desk, s.dir = desk, desk.Dir()
	const gone = 1<<22 + 1 // above the kernel's maximum (PID_MAX_LIMIT)
	for session, taken := range map[string]bool{question().SessionID: false, "ses_of_another_host": true} {
		leave := desk.AddHost(session, gone)
		if got := s.try(t, func(command string) { s.say(t, s.person, command) }); (got == "taken") != taken {
			t.Errorf("joined as %s: got %q, want that it is taken: %t", session, got, taken)
		}
		leave()
	}
}

// A bridge speaks for the process that started it. A job of a shell, such as curl at the end of a pipe, does not: the
// terminal of the person would be one of a host for as long as the shell lives.
func TestHostOf(t *testing.T) {
	for name, test := range map[string]struct {
		attributes syscall.SysProcAttr
		piped      bool
		starter    bool
	}{
		"a bridge":                         {syscall.SysProcAttr{}, true, true},
		"a bridge in a session of its own": {syscall.SysProcAttr{Setsid: true}, true, true},
		"a job of a shell":                 {syscall.SysProcAttr{Setpgid: true}, true, false},
		"a program that reads no pipe":     {syscall.SysProcAttr{}, false, false},
		"one in a session of its own":      {syscall.SysProcAttr{Setsid: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := exec.Command("sleep", "600")
			client.SysProcAttr = &test.attributes
			if test.piped {
				in, err := client.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
			}
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			defer client.Wait()
			defer client.Process.Kill()
			want := client.Process.Pid
			if test.starter {
				want = os.Getpid()
			}
			if got := approval.HostOf(client.Process.Pid); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}
