package approval_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: a shell of the agent's host could not approve, but could make a token that
// approves. Every act that widens what agents can do asks WidenCheck. The shell could also name the state
// directory by a link, or run the command in another namespace.
func TestNothingOfTheHostCanWiden(t *testing.T) {
	s := newScene(t)
	home := t.TempDir()
	other := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, other); err != nil {
		t.Fatal(err)
	}
	ask := func(t *testing.T, run func(command string)) string {
		t.Helper()
		result := fifo(t, t.TempDir(), "result")
		run(strings.Join([]string{s.self, "widen", home, result}, " "))
		text, err := os.ReadFile(result)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	inHost := func(format string) func(string) {
		return func(command string) { fmt.Fprintf(s.hostIn, format+" &\n", command) }
	}
	atTerminal := func(command string) { s.say(t, s.person, command) }
	if got := ask(t, inHost("%s")); got != "allowed" {
		t.Errorf("while no agent is served: got %q", got)
	}
	ready := fifo(t, t.TempDir(), "ready")
	fmt.Fprintf(s.hostIn, "%s announce %s %s host & echo $! > %s\n", s.self, home, ready, filepath.Join(home, "pid"))
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fmt.Fprintln(s.hostIn, "kill $(cat "+filepath.Join(home, "pid")+")") })
	for name, format := range map[string]string{
		"a child":                      "%s",
		"a child with its terminal":    `script -qec "%s" /dev/null </dev/null >/dev/null 2>&1`,
		"detached":                     "setsid -f %s",
		"detached, with a terminal":    `setsid -f script -qec "%s" /dev/null </dev/null >/dev/null 2>&1`,
		"without the announcing files": "rm -rf " + home + "/approvals; %s",
		"by another path":              "%s",
		"in a user namespace":          "unshare --user --map-root-user %s",
		"in a network namespace":       "unshare --user --map-root-user --net %s",
		"in a network namespace, with a terminal": "unshare --user --map-root-user --net " +
			`script -qec "%s" /dev/null </dev/null >/dev/null 2>&1`,
		"in namespaces of networks and processes": "unshare --user --map-root-user --net --pid --fork --mount-proc " +
			`script -qec "%s" /dev/null </dev/null >/dev/null 2>&1`,
		"in a namespace of processes": "unshare --user --map-root-user --pid --fork --mount-proc " +
			`script -qec "%s" /dev/null </dev/null >/dev/null 2>&1`,
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(format, "script") {
				if _, err := exec.LookPath("script"); err != nil {
					if testenv.WantsSandboxes() {
						t.Fatal("script is not installed")
					}
					t.Skip("script is not installed")
				}
			}
			if name == "by another path" { // AIRLOCK_HOME can name a link
				defer func(path string) { home = path }(home)
				home = other
			}
			if got := ask(t, inHost(format)); !strings.Contains(got, "agent's own host") &&
				!strings.Contains(got, "person's terminal") {
				t.Errorf("got %q, want it to be refused", got)
			}
		})
	}
	if got := ask(t, atTerminal); got != "allowed" {
		t.Errorf("at a person's terminal: got %q", got)
	}
}

// A daemon lists the hosts that are connected over HTTP. Besides that, widening takes a terminal, also while no host is
// connected. Issue 23: a shell of such a host could open a terminal and make a token that administers.
func TestWideningBesideADaemon(t *testing.T) {
	s := newScene(t)
	start := func(t *testing.T, hosts ...string) (home string) {
		t.Helper()
		home = t.TempDir()
		ready := fifo(t, t.TempDir(), "ready")
		daemon := exec.Command(s.self, append([]string{"announce", home, ready, "serve"}, hosts...)...)
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			daemon.Process.Signal(syscall.SIGCONT)
			daemon.Process.Kill()
			daemon.Wait()
		})
		if _, err := os.ReadFile(ready); err != nil {
			t.Fatal(err)
		}
		return home
	}
	inHost := func(t *testing.T, command string) {
		fmt.Fprintf(s.hostIn, "script -qec \"%s\" /dev/null </dev/null >/dev/null 2>&1 &\n", command)
	}
	atTerminal := func(t *testing.T, command string) { s.say(t, s.person, command) }
	none := func(*testing.T) []string { return nil }
	host := func(*testing.T) []string { return []string{strconv.Itoa(s.host.Process.Pid)} }
	for _, test := range []struct {
		name  string
		hosts func(*testing.T) []string
		by    func(*testing.T, string)
		want  string
	}{
		{"without a terminal", none, func(t *testing.T, command string) { s.say(t, s.person, "setsid -w "+command) },
			"without a terminal"},
		{"at a terminal", none, atTerminal, "allowed"},
		{"in a terminal that the host opened", host, inHost, "agent's own host"},
		{"in a terminal that the host of a bridge opened", s.bridge, inHost, "agent's own host"},
		{"at a terminal, beside a host", host, atTerminal, "allowed"},
		{"at a terminal, beside a bridge", s.bridge, atTerminal, "allowed"},
		{"beside a host that has ended", func(*testing.T) []string { return []string{"999999999"} }, atTerminal,
			"allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home, result := start(t, test.hosts(t)...), fifo(t, t.TempDir(), "result")
			test.by(t, s.self+" widen "+home+" "+result)
			if text, err := os.ReadFile(result); err != nil || !strings.Contains(string(text), test.want) {
				t.Errorf("got %q, %v, want %q", text, err, test.want)
			}
		})
	}
}

// Issue 23: a command with another state directory could make a token in the database of a cluster whose node serves
// the host.
func TestWideningInACluster(t *testing.T) {
	s := newScene(t)
	home, ready, result := t.TempDir(), fifo(t, t.TempDir(), "ready"), fifo(t, t.TempDir(), "result")
	node := exec.Command(s.self, "announce", home, ready, "cluster", strconv.Itoa(s.host.Process.Pid))
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait() // it was killed
	})
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][]int{home: {s.host.Process.Pid}, "other": nil} {
		if hosts, err := approval.HostsInCluster(key); err != nil || !slices.Equal(hosts, want) {
			t.Errorf("the hosts of the other nodes: got %v, %v, want %v", hosts, err, want)
		}
	}
	widen := func(key string) string { return s.self + " widen cluster:" + key + " " + result }
	for _, test := range []struct {
		name string
		by   func()
		want string
	}{
		{"in a terminal that the host opened", func() {
			fmt.Fprintf(s.hostIn, "script -qec \"%s\" /dev/null </dev/null >/dev/null 2>&1 &\n", widen(home))
		}, "agent's own host"},
		{"without a terminal", func() { s.say(t, s.person, "setsid -w "+widen(home)) }, "without a terminal"},
		{"at a terminal", func() { s.say(t, s.person, widen(home)) }, "allowed"},
		{"in another cluster", func() { fmt.Fprintf(s.hostIn, "%s &\n", widen("other")) }, "allowed"},
	} {
		test.by()
		if text, err := os.ReadFile(result); err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: got %q, %v, want %q", test.name, text, err, test.want)
		}
	}
}

// bridge starts a program that speaks to a host over its standard input, and returns its process ID.
func (s *scene) bridge(t *testing.T) []string {
	t.Helper()
	pid := fifo(t, t.TempDir(), "pid")
	fmt.Fprintf(s.hostIn, "sleep 600 | sh -c 'echo $$ > %s; exec sleep 600' &\n", pid)
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	bridge := strings.TrimSpace(string(text))
	t.Cleanup(func() { fmt.Fprintf(s.hostIn, "kill %s $(pgrep -P %d sleep)\n", bridge, s.host.Process.Pid) })
	return []string{"bridge:" + bridge}
}

// A process that looks for the hosts of its cluster does not ask itself. A node did, and each answer asked again.
func TestANodeDoesNotAskItself(t *testing.T) {
	home, key := t.TempDir(), "key of "+t.Name()
	var asked atomic.Int64
	ends := make([]func(), 2)
	var err error
	if ends[0], err = approval.Announce(home, approval.Serves, func() ([]int, error) {
		asked.Add(1)
		return approval.HostsInCluster(key)
	}); err != nil {
		t.Fatal(err)
	}
	if ends[1], err = approval.AnnounceCluster(key, home, func() ([]int, error) {
		asked.Add(1)
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := approval.HostsInCluster(key); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range ends {
		end()
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("it has asked itself %d times", n)
	}
}

// Issue 23: a launcher between the host and Airlock counted as the host. A terminal that the host had
// opened before it started the launcher then counted as a person's.
func TestALauncherDoesNotHideTheHost(t *testing.T) {
	s := newScene(t)
	home := t.TempDir()
	terminal, ready, result := fifo(t, t.TempDir(), "terminal"), fifo(t, t.TempDir(), "ready"),
		fifo(t, t.TempDir(), "result")
	fmt.Fprintf(s.hostIn, "setsid -f %s terminal %s\n", s.self, terminal)
	s.say(t, terminal, "echo > "+ready)
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.say(t, terminal, "exit") })
	for { // until the kernel reports a new process as younger than the terminal
		probe := exec.Command("sleep", "600")
		if err := probe.Start(); err != nil {
			t.Fatal(err)
		}
		younger := startOf(t, probe.Process.Pid) > startOf(t, terminalOf(t, terminal))
		probe.Process.Kill()
		probe.Wait() // it was killed
		if younger {
			break
		}
	}
	input, pid := filepath.Join(home, "input"), filepath.Join(home, "pid")
	fmt.Fprintf(s.hostIn, "sh -c 'echo $$ >%s; exec sleep 600' | sh -c 'echo $$ >%s; %s announce %s %s host; :' &\n",
		input, pid, s.self, home, ready)
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fmt.Fprintf(s.hostIn, "pkill -P $(cat %s); kill $(cat %s)\n", pid, input) })
	s.say(t, terminal, strings.Join([]string{s.self, "widen", home, result}, " "))
	if text, err := os.ReadFile(result); err != nil || !strings.Contains(string(text), "agent's own host") {
		t.Errorf("a terminal that the host opened earlier: got %q, %v, want it to be refused", text, err)
	}
	s.say(t, s.person, strings.Join([]string{s.self, "widen", home, result}, " "))
	if text, err := os.ReadFile(result); err != nil || string(text) != "allowed" {
		t.Errorf("a person's terminal: got %q, %v", text, err)
	}
}
