package approval_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// act lets the test binary act as another program, selected by its arguments. It returns false
// without such arguments.
func act(args []string) bool {
	if len(args) < 2 {
		return false
	}
	switch args[1] {
	case "reply": // DIR ID FILE: approves, and writes the result to the file
		p, err := approval.Find(args[2], args[3])
		if err == nil {
			_, err = approval.Reply(args[2], p, approval.Decision{Approve: true})
		}
		result := "taken"
		if err != nil {
			result = err.Error()
		}
		out, err := os.OpenFile(args[4], os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		out.WriteString(result)
		out.Close()
	case "widen": // HOME FILE: writes to the file whether this process may widen what agents can do
		result, check := "allowed", approval.WidenCheck
		key, isCluster := strings.CutPrefix(args[2], "cluster:")
		if isCluster {
			check = approval.WidenCheckCluster
		}
		if err := check(key); err != nil {
			result = err.Error()
		}
		if err := os.WriteFile(args[3], []byte(result), 0o600); err != nil {
			panic(err)
		}
	case "announce": // HOME FILE ROLE [HOST…]: serves agents until it is killed, and writes to the file when ready
		hosts := func() ([]int, error) {
			var found []int
			for _, arg := range args[5:] {
				number, isBridge := strings.CutPrefix(arg, "bridge:")
				pid, err := strconv.Atoi(number)
				if err != nil {
					panic(err)
				}
				if isBridge {
					pid = approval.HostOf(pid)
				}
				found = append(found, pid)
			}
			return found, nil
		}
		role := approval.Role(args[4])
		if role == "cluster" { // whose key is the home
			role = approval.Serves
			if _, err := approval.AnnounceCluster(args[2], args[2], hosts); err != nil {
				panic(err)
			}
		}
		if _, err := approval.Announce(args[2], role, hosts); err != nil {
			panic(err)
		}
		if err := os.WriteFile(args[3], []byte("ready"), 0o600); err != nil {
			panic(err)
		}
		select {}
	case "terminal": // FILE: a person's terminal, whose shell runs the lines of the file
		// A line may be read before its writer has closed the pipe. The next read is then empty.
		cmd := exec.Command("sh", "-c", `while :; do read -r line < "$0" && eval "$line"; done`, args[2])
		typed, err := testenv.StartAtTerminal(cmd)
		if err != nil {
			panic(err)
		}
		go io.Copy(io.Discard, typed)
		cmd.Wait()
	case "host": // an agent's host: a shell that runs the lines of its stdin
		cmd := exec.Command("sh")
		cmd.Stdin = os.Stdin
		cmd.Run()
	default:
		return false
	}
	return true
}

// scene is a desk whose agent has a host, and a person's terminal that is older than the host.
type scene struct {
	dir    string
	self   string // the test binary
	person string // the person's shell runs the lines written to this file
	hostIn io.Writer
	host   *exec.Cmd
	desk   *approval.Desk
}

// fifo makes a named pipe.
func fifo(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newScene(t *testing.T) *scene {
	t.Helper()
	for _, program := range []string{"setsid", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{dir: t.TempDir(), self: self}
	s.person = fifo(t, t.TempDir(), "person")
	if err := exec.Command("setsid", "-f", self, "terminal", s.person).Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.say(t, s.person, "exit") })
	ready := fifo(t, t.TempDir(), "ready")
	s.say(t, s.person, "echo > "+ready) // it is ready
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	s.startHost(t)
	desk, err := approval.OpenDesk(s.dir, &approval.Options{HostPID: s.host.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	s.desk = desk
	t.Cleanup(func() { desk.Close() })
	return s
}

// startHost starts the host, and repeats this until the kernel reports it as younger than the
// person's terminal.
func (s *scene) startHost(t *testing.T) {
	t.Helper()
	oldest := startOf(t, os.Getpid())
	for {
		s.host = exec.Command(s.self, "host")
		in, err := s.host.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.host.Start(); err != nil {
			t.Fatal(err)
		}
		probe := exec.Command("true")
		if err := probe.Start(); err != nil {
			t.Fatal(err)
		}
		younger := startOf(t, s.host.Process.Pid) > startOf(t, terminalOf(t, s.person)) &&
			startOf(t, s.host.Process.Pid) > oldest
		probe.Wait()
		if younger {
			s.hostIn = in
			host := s.host
			t.Cleanup(func() { in.Close(); host.Wait() })
			return
		}
		in.Close()
		s.host.Wait()
	}
}

// terminalOf finds the process of a person's terminal by its argument.
func terminalOf(t *testing.T, file string) int {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range entries {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("\x00terminal\x00"+file+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	t.Fatal("the terminal has ended")
	return 0
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[19], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *scene) say(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// try lets a user approve a question with a command line, and returns the result.
func (s *scene) try(t *testing.T, run func(command string)) string {
	t.Helper()
	q := question()
	verdict := ask(t, s.desk, q)
	p := posted(t, s.dir, q.ID)
	result := fifo(t, t.TempDir(), "result")
	run(strings.Join([]string{s.self, "reply", s.dir, q.ID, result}, " "))
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "taken" {
		if _, err := approval.Reply(s.dir, p, approval.Decision{}); err != nil {
			t.Errorf("refusing it afterwards: %v", err)
		}
	}
	if v := <-verdict; (v.Answer == approval.Yes) != (string(text) == "taken") {
		t.Errorf("got %+v, but the answer was told %q", v, text)
	}
	return string(text)
}

// No process started by the host, or by the parent of the host, can approve, whether or not it is
// detached or has its own terminal.
func TestNothingOfTheHostCanApprove(t *testing.T) {
	s := newScene(t)
	work := t.TempDir()
	group := fmt.Sprintf("airlock-test-%d", os.Getpid())
	script := func(command string) string {
		return `script -qec "` + command + `" /dev/null </dev/null >/dev/null 2>&1`
	}
	inHost := func(format func(string) string) func(*testing.T, string) {
		return func(t *testing.T, command string) {
			if _, err := fmt.Fprintln(s.hostIn, format(command)+" &"); err != nil {
				t.Fatal(err)
			}
		}
	}
	plain := func(command string) string { return command }
	tests := []struct {
		name  string
		needs string
		run   func(t *testing.T, command string)
	}{
		{"a child of the host", "", inHost(plain)},
		{"a child with a terminal of its own", "script", inHost(script)},
		{"a grandchild with a terminal", "script",
			inHost(func(c string) string { return "sh -c '" + script(c) + "'" })},
		{"a session of its own", "", inHost(func(c string) string { return "setsid " + c })},
		{"without hangup", "nohup", inHost(func(c string) string { return "nohup " + c + " >/dev/null 2>&1" })},
		{"detached", "", inHost(func(c string) string { return "setsid -f " + c })},
		{"detached, with a terminal", "script", inHost(func(c string) string { return "setsid -f " + script(c) })},
		{"detached twice, with a terminal", "script",
			inHost(func(c string) string { return "(setsid -f sh -c '(" + script(c) + ") & exit' &)" })},
		{"detached, with an empty environment", "script",
			inHost(func(c string) string { return "env -i PATH=$PATH setsid -f " + script(c) })},
		{"detached, nice and without hangup", "script",
			inHost(func(c string) string { return "nohup nice setsid -f " + script(c) })},
		{"an orphan in the host's session, with a terminal", "script",
			inHost(func(c string) string { return "(" + script(c) + " &)" })},
		{"a terminal within a terminal", "script",
			inHost(func(c string) string { return script("script -qec '" + c + "' /dev/null") })},
		{"a multiplexer that the host has started", "tmux", inHost(func(c string) string {
			return "tmux -S " + filepath.Join(work, "m1") + " -f /dev/null new-session -d '" + c + "'"
		})},
		{"a multiplexer that was detached", "tmux", inHost(func(c string) string {
			return "setsid -f tmux -S " + filepath.Join(work, "m2") + " -f /dev/null new-session -d '" + c + "'"
		})},
		{"a terminal made by Python", "python3", inHost(func(c string) string {
			return `python3 -c "import os,pty; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); ` +
				`pty.spawn('` + c + `'.split())" </dev/null >/dev/null`
		})},
		{"a process that cannot be looked into holds the terminal", "python3", inHost(func(c string) string {
			return `python3 -c "import os,pty,ctypes; os.fork() and os._exit(0); os.setsid(); ` +
				`ctypes.CDLL(None).prctl(4,0,0,0,0); pty.spawn('` + c + `'.split())" </dev/null >/dev/null`
		})},
		{"detached into a control group of its own, with a terminal", "script", inHost(func(c string) string {
			enter := "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do test -e $d/cgroup.procs && mkdir $d/" + group +
				" && echo 0 > $d/" + group + "/cgroup.procs; done 2>/dev/null; "
			leave := "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do test -e $d/cgroup.procs && echo 0 > " +
				"$d/cgroup.procs && rmdir $d/" + group + "; done 2>/dev/null"
			file := filepath.Join(work, "enter.sh")
			if err := os.WriteFile(file, []byte(enter+script(c)+"; "+leave), 0o700); err != nil {
				t.Error(err)
			}
			return "setsid -f sh " + file
		})},
		{"a child of what has started the host", "", func(t *testing.T, command string) {
			cmd := exec.Command("sh", "-c", command)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Wait() })
		}},
		{"a terminal of what has started the host", "", func(t *testing.T, command string) {
			drain(testenv.Terminal(t, exec.Command("sh", "-c", command)))
		}},
		{"a person's terminal, in its background", "",
			func(t *testing.T, command string) { s.say(t, s.person, "set -m; "+command+" & set +m") }},
		{"a person's terminal, in a session without one", "",
			func(t *testing.T, command string) { s.say(t, s.person, "setsid -w "+command) }},
		{"a person's terminal, by another program", "python3", func(t *testing.T, command string) {
			copied := filepath.Join(work, "copied")
			program, err := os.ReadFile(s.self)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied, program, 0o700); err != nil {
				t.Fatal(err)
			}
			s.say(t, s.person, strings.Replace(command, s.self, copied, 1))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.needs != "" {
				if _, err := exec.LookPath(test.needs); err != nil {
					t.Skipf("%s is not installed", test.needs)
				}
			}
			got := s.try(t, func(command string) { test.run(t, command) })
			if got == "taken" {
				t.Error("the approval was taken")
			}
			if !strings.Contains(got, "agent's own host") && !strings.Contains(got, "person's terminal") {
				t.Errorf("got %q, want one that describes where the answer came from", got)
			}
			t.Log(got)
		})
	}
	t.Run("a person's terminal", func(t *testing.T) {
		if got := s.try(t, func(command string) { s.say(t, s.person, command) }); got != "taken" {
			t.Errorf("got %q, want it to be taken", got)
		}
	})
}

// drain reads what is printed at a terminal, so that the writer never blocks.
func drain(printed *os.File) { go io.Copy(io.Discard, printed) }

// Without a host, as with `airlock run`, an approval still needs a terminal.
func TestAnApprovalNeedsATerminal(t *testing.T) {
	dir := t.TempDir()
	desk, err := approval.OpenDesk(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { desk.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{dir: dir, self: self, desk: desk}
	none := s.try(t, func(command string) {
		cmd := exec.Command("setsid", "sh", "-c", command)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Wait() })
	})
	if !strings.Contains(none, "without a terminal") {
		t.Errorf("without one: got %q", none)
	}
	at := s.try(t, func(command string) { drain(testenv.Terminal(t, exec.Command("sh", "-c", command))) })
	if at != "taken" {
		t.Errorf("at one: got %q", at)
	}
}

// A common ancestor that starts people's sessions is permitted; one that may start programs for the
// host is not.
func TestWhatIsApart(t *testing.T) {
	const scope = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/"
	host := []approval.Process{
		{PID: 500, Parent: 400, Session: 500, Started: 1000, Name: "claude", Cgroup: scope + "app-host.scope"},
		{PID: 400, Parent: 300, Session: 400, Started: 900, Name: "code", Cgroup: scope + "app-host.scope"},
		{PID: 300, Parent: 1, Session: 300, Started: 100, Name: "systemd", Cgroup: scope + "init.scope"},
	}
	in := func(parent approval.Process, line ...approval.Process) []approval.Process {
		return append(line, parent)
	}
	systemd, editor := host[2], host[1]
	tests := []struct {
		name  string
		line  []approval.Process
		apart bool
	}{
		{"a terminal program, started later, in its own scope",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "gnome-terminal-",
				Cgroup: scope + "vte.scope", IsTerminal: true}), true},
		{"a service that the user has named", in(systemd,
			approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "script",
				Cgroup: scope + "backup.service"}), false},
		{"a scope that is named as an application's",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "script",
				Cgroup: scope + "app-org.kde.konsole-12.scope"}), false},
		{"an orphan that calls itself a terminal program",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "konsole",
				Cgroup: scope + "app-x.scope"}), false},
		{"a terminal program in the host's own group",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "konsole",
				Cgroup: scope + "app-host.scope", IsTerminal: true}), false},
		{"a login at a console, in its session's scope",
			in(systemd, approval.Process{PID: 600, Parent: 1, Session: 600, Started: 2000, Name: "login",
				Cgroup: "0::/user.slice/user-1000.slice/session-9.scope",
				Fixed:  "0::/user.slice/user-1000.slice/session-9.scope"}), true},
		{"a terminal program that was there before",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 500, Name: "konsole",
				Cgroup: scope + "app-host.scope"}), true},
		{"an orphan of the host",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "script",
				Cgroup: scope + "app-host.scope"}), false},
		{"a transient service",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "bash",
				Cgroup: scope + "run-u12.service"}), false},
		{"a transient scope",
			in(systemd, approval.Process{PID: 600, Parent: 300, Session: 600, Started: 2000, Name: "bash",
				Cgroup: scope + "run-r0123456789abcdef.scope"}), false},
		{"another terminal of the editor", in(editor,
			approval.Process{PID: 600, Parent: 400, Session: 600, Started: 2000, Name: "bash",
				Cgroup: scope + "app-host.scope"}), false},
		{"the editor itself", []approval.Process{editor, systemd}, false},
		{"a job of cron", []approval.Process{
			{PID: 700, Parent: 600, Session: 700, Started: 2000, Name: "sh", Cgroup: "0::/system.slice/cron.service"},
			{PID: 600, Parent: 1, Session: 600, Started: 50, Name: "cron", Cgroup: "0::/system.slice/cron.service"},
		}, false},
		{"a job of at", []approval.Process{
			{PID: 700, Parent: 600, Session: 700, Started: 2000, Name: "sh", Cgroup: "0::/system.slice/atd.service"},
			{PID: 600, Parent: 1, Session: 600, Started: 50, Name: "atd", Cgroup: "0::/system.slice/atd.service"},
		}, false},
		{"a login over the network", []approval.Process{
			{PID: 800, Parent: 700, Session: 800, Started: 2000, Name: "bash",
				Cgroup: "0::/user.slice/session-5.scope"},
			{PID: 700, Parent: 600, Session: 700, Started: 1990, Name: "sshd-session",
				Cgroup: "0::/user.slice/session-5.scope"},
			{PID: 600, Parent: 1, Session: 600, Started: 50, Name: "sshd", Cgroup: "0::/system.slice/ssh.service"},
		}, true},
		{"who entered the container from outside",
			[]approval.Process{{PID: 700, Parent: 0, Session: 700, Started: 2000, Name: "bash",
				Cgroup: scope + "app-host.scope"}}, true},
		{"the host's session",
			[]approval.Process{{PID: 700, Parent: 1, Session: 500, Started: 2000, Name: "sh", Cgroup: "0::/elsewhere"}},
			false},
		{"the same tick as the host",
			[]approval.Process{{PID: 700, Parent: 1, Session: 700, Started: 1000, Name: "sh",
				Cgroup: scope + "app-host.scope"}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := approval.Apart(host, test.line)
			if (err == nil) != test.apart || err != nil && !errors.Is(err, approval.ErrOfHost) {
				t.Errorf("got %v, want apart %v", err, test.apart)
			}
		})
	}
	first := []approval.Process{{PID: 1, Parent: 0, Session: 1, Started: 1, Name: "agent"}}
	inside := []approval.Process{{PID: 9, Parent: 1, Session: 9, Started: 5, Name: "bash", Cgroup: "0::/other"}}
	outside := []approval.Process{{PID: 9, Parent: 0, Session: 9, Started: 5, Name: "bash"}}
	if err := approval.Apart(first, inside); !errors.Is(err, approval.ErrOfHost) {
		t.Errorf("in a container of the host: got %v", err)
	}
	if err := approval.Apart(first, outside); err != nil {
		t.Errorf("from outside a container of the host: got %v", err)
	}
	if err := approval.Apart(nil, host); err != nil {
		t.Errorf("without a host: got %v", err)
	}
}
