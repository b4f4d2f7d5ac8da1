package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// write writes a file of the working directory.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// daemonHere starts a daemon for the configuration of a new working directory.
func daemonHere(t *testing.T, config string) {
	t.Helper()
	testenv.OwnHome(t, "node", "python")
	t.Chdir(t.TempDir())
	t.Setenv("AIRLOCK_CONFIG", "airlock.yaml") // which needs no confirmation
	write(t, "airlock.yaml", config)
	beginDaemon(t)
}

func beginDaemon(t *testing.T) {
	t.Helper()
	if _, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0"); code != 0 {
		t.Fatal(stderr)
	}
	t.Cleanup(func() { airlock(t, "stop") }) // it may have ended
}

// vary are the parts of an envelope that differ from run to run.
var vary = regexp.MustCompile(`"(run_id|trace_id|duration_ms|peak_memory_bytes|cpu_ms)":("[^"]*"|\d+),?`)

// The output and exit code of `airlock run` are the same with and without a daemon, for every
// program and every invalid request.
func TestARunIsTheSameThroughADaemon(t *testing.T) {
	daemonHere(t, "mcpServers: {gone: {command: /no/such/program}, desk: {command: "+upstreamtest.Program(t)+
		"}}\nservers: {desk: {trustAnnotations: true}}\nprofiles: {small: {servers: [desk]}}\n")
	for name, program := range map[string]string{
		"works.py":  "from servers.desk import echo\nprint('hi')\nresult = (await echo(text='a')).data",
		"works.js":  "console.error('hi')\nglobalThis.result = {a: '<\\u2028&'}",
		"fails.py":  "raise KeyError('x')",
		"syntax.py": "result = (",
		"none.py":   "print('only printed')",
		"slow.py":   "while True: pass",
		"empty.py":  " ",
	} {
		write(t, name, program)
	}
	requests := [][]string{
		{"works.py"}, {"works.js"}, {"fails.py"}, {"syntax.py"}, {"none.py"}, {"slow.py", "--timeout=1s"}, {"empty.py"},
		{"works.py", "--profile=small"}, {"works.py", "--profile=none"}, {"works.py", "--timeout=-1s"},
		{"works.py", "--lang=ruby"}, {"missing.py"},
	}
	there := map[string]string{}
	outcome := func(args []string) string {
		stdout, stderr, code := airlock(t, append([]string{"run"}, args...)...)
		return fmt.Sprintf("exit code %d\n%s\n%s", code, vary.ReplaceAllString(stdout, ""), stderr)
	}
	for _, args := range requests {
		there[fmt.Sprint(args)] = outcome(args)
	}
	if _, stderr, code := airlock(t, "stop"); code != 0 {
		t.Fatal(stderr)
	}
	log, err := os.ReadFile(filepath.Join(os.Getenv("AIRLOCK_HOME"), "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range requests {
		if got, want := there[fmt.Sprint(args)], outcome(args); got != want {
			t.Errorf("%q through a daemon: got\n%s\nwant, as without one,\n%s\nthe daemon's log:\n%s", args, got, want,
				log)
		}
	}
}

// If a daemon is killed while it runs a program, the run's line reports it, and the program does
// not run again.
func TestADaemonIsKilledDuringARun(t *testing.T) {
	daemonHere(t, "mcpServers: {desk: {command: "+upstreamtest.Program(t)+
		"}}\nservers: {desk: {trustAnnotations: true}}\n")
	write(t, "p.py", "from servers.desk import slow_read\nawait slow_read()")
	cmd := exec.Command(ownProgram(), "run", "p.py")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, "the run begins", func() bool {
		begun, _, _ := airlock(t, "runs", "list", "--json")
		return strings.Contains(begun, `"run_id"`)
	})
	var daemon struct{ PID int }
	status, _, _ := airlock(t, "status", "--json")
	if err := json.Unmarshal([]byte(status), &daemon); err != nil {
		t.Fatalf("%v in %s", err, status)
	}
	if err := syscall.Kill(daemon.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the result is in its exit code
	var envelope struct {
		Result struct {
			Error struct{ Type, Message string }
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &envelope); err != nil || strings.Count(stdout.String(), "\n") != 1 {
		t.Fatalf("%v in %s", err, &stdout)
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 ||
		!strings.Contains(envelope.Result.Error.Message, "not run again") ||
		!strings.Contains(stderr.String(), "the Airlock daemon ended while it ran the program") {
		t.Errorf("got exit code %d, %s and %s", code, &stdout, &stderr)
	}
	// The next run works, alone, and is the second one.
	write(t, "q.py", "result = 1")
	if stdout, stderr, code := airlock(t, "run", "q.py"); code != 0 {
		t.Errorf("afterwards: got %d, %s, %s", code, stdout, stderr)
	}
	list, stderrOfList, _ := airlock(t, "runs", "list", "--json")
	if n := strings.Count(list, `"run_id"`); n != 2 {
		t.Errorf("got %d runs in %s%s, want 2", n, list, stderrOfList)
	}
}

// A program whose client is interrupted is cancelled, and its line printed.
func TestAnInterruptedRunOfADaemon(t *testing.T) {
	daemonHere(t, "")
	write(t, "p.py", "import sys, time\nprint('began')\nsys.stdout.flush()\ntime.sleep(25)")
	cmd := exec.Command(ownProgram(), "run", "p.py")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitRun(t)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the result is in its exit code
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stdout.String(), `"ok":false`) ||
		!strings.Contains(stdout.String(), "cancelled") {
		t.Errorf("got exit code %d and %s, want 1 and that it was cancelled", code, &stdout)
	}
}

// A call can be approved at the terminal of `airlock run`, whichever process executes the run.
func TestARunOfADaemonAsksAtItsTerminal(t *testing.T) {
	daemonHere(t, "mcpServers: {desk: {command: "+upstreamtest.Program(t)+"}}\n")
	write(t, "p.py", `from client.mcp_client import call_tool
answer = await call_tool(server_id="desk", name="count", arguments={})
result = answer["error"]["type"] if "error" in answer else "done"
`)
	for key, want := range map[string]string{"y": "done", "n": "ApprovalDenied"} {
		terminal := testenv.Terminal(t, exec.Command(ownProgram(), "run", "p.py"))
		if err := terminal.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Logf("reading the terminal without a time limit: %v", err)
		}
		var shown strings.Builder
		buffer, typed := make([]byte, 4096), false
		for {
			n, err := terminal.Read(buffer)
			shown.Write(buffer[:n])
			if !typed && strings.Contains(shown.String(), "May this call happen?") &&
				strings.Contains(shown.String(), "s decide later: ") {
				typed = true
				if _, err := io.WriteString(terminal, key); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil { // the program has ended
				break
			}
		}
		lines := strings.Split(shown.String(), "\r\n")
		for i, line := range lines { // what the line of progress showed was erased
			lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
			lines[i] = strings.TrimPrefix(lines[i], "\x1b[K")
		}
		if !slices.Contains(lines, want) {
			t.Errorf("%s: the terminal shows\n%q\nwant the line %s", key, lines, want)
		}
	}
}
