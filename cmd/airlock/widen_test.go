package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// person is a terminal that was there before the agent's host, as that of a person.
type person struct {
	t     *testing.T
	typed string // a named pipe whose lines the terminal's shell executes
}

func newPerson(t *testing.T) *person {
	t.Helper()
	for _, program := range []string{"setsid", "script"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed", program)
		}
	}
	p := &person{t, filepath.Join(t.TempDir(), "typed")}
	if err := syscall.Mkfifo(p.typed, 0o600); err != nil {
		t.Fatal(err)
	}
	shell := fmt.Sprintf(`while :; do read -r line <%s && eval "$line"; done`, p.typed)
	if err := exec.Command("setsid", "-f", "script", "-qec", shell, "/dev/null").Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.types("exit") })
	p.isOlder()
	return p
}

// isOlder returns when a process that starts now is younger than the terminal for the kernel, whose start times have
// hundredths of a second.
func (p *person) isOlder() {
	p.t.Helper()
	const started = "cut -d' ' -f22 /proc/%s/stat"
	terminal := strings.Fields(p.does(fmt.Sprintf(started, "$PPID")))
	for {
		now, err := exec.Command("sh", "-c", fmt.Sprintf(started, "self")).Output()
		if err != nil || len(terminal) != 2 {
			p.t.Fatalf("reading start times: %q, %q, %v", terminal, now, err)
		}
		if later, earlier := strings.TrimSpace(string(now)), terminal[1]; len(later) > len(earlier) || later > earlier {
			return
		}
	}
}

func (p *person) types(line string) {
	p.t.Helper()
	f, err := os.OpenFile(p.typed, os.O_WRONLY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// does executes a command at the terminal and returns its exit code and what it printed.
func (p *person) does(command string) string {
	p.t.Helper()
	result := filepath.Join(p.t.TempDir(), "result")
	if err := syscall.Mkfifo(result, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.types(fmt.Sprintf(`said=$(%s 2>&1); echo "$? $said" >%s`, command, result))
	text, err := os.ReadFile(result)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// issue 23: a shell of the agent's host changed the policies, and the change was in force
// at once. Now a change that may permit more is shown and recorded, and is in force only
// after a person has confirmed it outside of the host; a restart does not help the host.
func TestAWideningChangeWaitsForAPerson(t *testing.T) {
	env := testenv.OwnHome(t, "python")
	home := env.Home
	dir := t.TempDir()
	file, rules := filepath.Join(dir, "airlock.yaml"), filepath.Join(dir, "rules.cedar")
	program := filepath.Join(testenv.RepoRoot(t), "bin", "airlock")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const narrow = "permit(principal, action, resource) when { resource.risk == \"read\" };\n"
	const wide = "permit(principal, action, resource);\n"
	write(file, "mcpServers: {files: {command: cat}}\npolicies: [rules.cedar]\n")
	write(rules, narrow)
	ann := newPerson(t)
	in := fmt.Sprintf("env AIRLOCK_HOME=%s AIRLOCK_RUNSC=%s %s ", home, env.Runsc, program)
	atTerminal := func(args string) string { return ann.does(in + args) }

	// The host is a shell, which starts Airlock and runs the model's commands.
	start := func(served bool) (expect func(string), end func()) {
		t.Helper()
		host := exec.Command("sh", "-c", fmt.Sprintf("cat | %s mcp --config %s; :", program, file))
		host.Env = append(os.Environ(), "AIRLOCK_HOME="+home, "AIRLOCK_RUNSC="+env.Runsc)
		host.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		stdin, stdout, stderr := pipes(t, host)
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		io.WriteString(stdin,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n")
		if served {
			if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatalf("got %q, %v, want the answer to initialize", line, err)
			}
		}
		lines := bufio.NewScanner(stderr)
		return func(want string) {
				t.Helper()
				for lines.Scan() {
					if strings.Contains(lines.Text(), want) {
						return
					}
				}
				t.Fatalf("stderr ended without %q", want)
			}, func() {
				stdin.Close()
				for lines.Scan() { // to its end
				}
				host.Wait()
			}
	}
	expect, end := start(true)
	defer func() { end() }()

	write(rules, narrow+"forbid(principal, action, resource) when { resource.denied };\n")
	expect("changed and in force: policies")
	write(rules, wide)
	expect("may permit more than the one that was confirmed")
	expect("hint: look at the difference and confirm it in your own terminal: airlock trust " + file)

	// In the host nobody confirms it, makes a token that approves, runs a program under other rules, or
	// reads it after a restart.
	other, code := filepath.Join(dir, "other.yaml"), filepath.Join(dir, "code.py")
	write(other, "policies: [wide.cedar]\n")
	write(filepath.Join(dir, "wide.cedar"), wide)
	write(code, "result = 1\n")
	for _, args := range [][]string{
		{"trust", "--yes", file}, {"tokens", "create", "x", "--scope", "admin"},
		{"tokens", "create", "x", "--scope", "run,approve"}, {"tokens", "create", "x", "--scope", "run,agents"},
		{"tokens", "create", "x", "--scope", "agents:autonomous"},
		{"tools", "accept", "--all", "--config", file}, {"agents", "create", "x", "--type", "trusted"},
		{"integrity", "seal"}, {"run", "--config", other, code},
	} {
		cmd := testenv.AtTerminal(t, exec.Command(program, args...))
		cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+home)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "refused while agents are served") {
			t.Errorf("airlock %q beside the host: got %v, %s", args, err, out)
		}
	}
	// A command of the host that serves a new file confirms nothing, and is recorded.
	cmd := exec.Command(program, "mcp", "--config", other)
	cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+home, "AIRLOCK_RUNSC="+env.Runsc)
	if out, err := cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "was never confirmed, and other agents are served") ||
		!strings.Contains(string(out), "airlock trust "+other) {
		t.Errorf("a new configuration beside the host: got %v, %s", err, out)
	}
	end()
	expect, end = start(false)
	expect("may permit more than the one that was confirmed")
	end()

	// A person confirms it, and the next start has it.
	if got := atTerminal("trust --yes " + file); !strings.HasPrefix(got, "0 ") ||
		!strings.Contains(got, "may permit more: added: permit") {
		t.Errorf("at the person's terminal: got %s", got)
	}
	expect, end = start(true)
	write(rules, wide+"forbid(principal, action, resource) when { resource.denied };\n")
	expect("changed and in force: policies")
	write(rules, wide)
	expect("may permit more")
	if got := atTerminal("trust --yes " + file); !strings.HasPrefix(got, "0 ") {
		t.Errorf("at the person's terminal, while a host is connected: got %s", got)
	}
	expect("changed and in force: policies")
	if got := atTerminal("tokens create x --scope admin"); !strings.HasPrefix(got, "0 ") {
		t.Errorf("a token for a person: got %s", got)
	}
	if got := atTerminal("run --config " + other + " " + code); !strings.HasPrefix(got, "0 ") {
		t.Errorf("a person runs a program with another configuration: got %s", got)
	}
	out := atTerminal("audit tail -n 100 --json")
	for _, want := range []string{"was never confirmed", "waits for a person's confirmation",
		"+permit (principal, action, resource)",
		"is confirmed, digest sha256:"} {
		if !strings.Contains(strings.ReplaceAll(out, "+permit(", "+permit ("), want) {
			t.Errorf("the audit log has no record with %q:\n%s", want, out)
		}
	}
}

// issue 23: a daemon did not know the hosts that are connected over HTTP, so a shell of such a host could open a
// terminal and make a token that administers, or get a link to the console that does.
func TestAHostOverHTTPCannotWiden(t *testing.T) {
	env := testenv.OwnHome(t, "python")
	dir := t.TempDir()
	program := filepath.Join(testenv.RepoRoot(t), "bin", "airlock")
	file := filepath.Join(dir, "airlock.yaml")
	if err := os.WriteFile(file, []byte("servers: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ann := newPerson(t)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append(args, "--config", file)...)
		cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+env.Home, "AIRLOCK_RUNSC="+env.Runsc)
		return cmd
	}
	token, err := testenv.AtTerminal(t, command("tokens", "create", "host")).Output()
	if err != nil {
		t.Fatal(err)
	}
	daemon := command("serve", "--listen", "127.0.0.1:0")
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Process.Signal(os.Interrupt); daemon.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	port := url[strings.LastIndex(url, ":")+1 : len(url)-1]

	// The host is a shell that speaks HTTP and runs the model's commands.
	commands := filepath.Join(dir, "commands")
	if err := syscall.Mkfifo(commands, 0o600); err != nil {
		t.Fatal(err)
	}
	host := exec.Command("bash", "-c", "while :; do read -r line <"+commands+` && eval "$line"; done`)
	host.Env = append(os.Environ(), "AIRLOCK_HOME="+env.Home, "AIRLOCK_CONFIG="+file, "AIRLOCK_RUNSC="+env.Runsc)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	says := func(line string) string { // runs a line and returns its output
		t.Helper()
		result := filepath.Join(t.TempDir(), "result")
		if err := syscall.Mkfifo(result, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(commands, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "{ %s; } >%s 2>&1\n", line, result)
		f.Close()
		text, err := os.ReadFile(result)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Cleanup(func() { host.Process.Kill(); host.Wait() })
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	request := fmt.Sprintf(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n`+
		`Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s`,
		port, strings.TrimSpace(string(token)), len(body), body)
	if got := says("exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf '" + request + "' >&3; head -n 1 <&3"); !strings.
		Contains(got, "200 OK") {
		t.Fatalf("the host's first request: got %q", got)
	}
	terminal := func(args string) string {
		return `script -qec "` + program + " " + args + `" /dev/null </dev/null`
	}
	const refused, reading = "refused while agents are served", "cannot answer questions"
	widens := terminal("tokens create x --scope admin")
	for _, test := range []struct{ name, line, want string }{
		{"a token that administers", widens, refused},
		{"one that can register agents", terminal("tokens create x --scope agents"), refused},
		{"a trusted agent", terminal("agents create x --type trusted"), refused},
		{"a link to the console", terminal("console"), reading},
		{"in a session of its own", "setsid -w " + widens, refused},
		{"in a network namespace", "unshare --user --map-root-user --net " + widens, refused},
		{"after it closed its connection", "exec 3>&-; " + widens, refused},
	} {
		if got := says(test.line); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	in := fmt.Sprintf("env AIRLOCK_HOME=%s AIRLOCK_CONFIG=%s %s ", env.Home, file, program)
	if got := ann.does(in + "tokens create x --scope admin"); !strings.HasPrefix(got, "0 ") {
		t.Errorf("a person's terminal: got %q", got)
	}
	if got := ann.does(in + "console"); !strings.HasPrefix(got, "0 ") || strings.Contains(got, reading) {
		t.Errorf("a person's link: got %q", got)
	}
}
