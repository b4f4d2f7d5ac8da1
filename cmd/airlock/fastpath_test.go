package main

import (
	"bytes"
	"encoding/json"
	"errors"
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

	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// started is the result of a process: its output, its exit code, and the packages that were
// initialised before its end.
type started struct {
	stdout, stderr string
	code           int
	packages       map[string]bool
}

// initialised is a line that Go's runtime writes to stderr for each package, see
// GODEBUG=inittrace=1 in the documentation of package runtime.
var initialised = regexp.MustCompile(`(?m)^init (\S+) @.*\n`)

// large are packages that are initialised late, of the largest parts that Airlock is
// linked from.
var large = []string{"net/http", "crypto/tls", "github.com/alecthomas/kong", "github.com/santhosh-tekuri/jsonschema/v5",
	"google.golang.org/grpc", "modernc.org/sqlite"}

// startedOf runs a command with a trace of what is initialised.
func startedOf(t *testing.T, cmd *exec.Cmd) started {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	s := started{stdout.String(), initialised.ReplaceAllString(stderr.String(), ""), cmd.ProcessState.ExitCode(),
		map[string]bool{}}
	for _, line := range initialised.FindAllStringSubmatch(stderr.String(), -1) {
		s.packages[line[1]] = true
	}
	return s
}

// fast reports whether the process ended before what is large was initialised.
func (s started) fast() bool {
	return len(s.packages) > 0 && !slices.ContainsFunc(large, func(name string) bool { return s.packages[name] })
}

// ofCall matches the parts of an envelope that differ between runs with calls.
var ofCall = regexp.MustCompile(`call_[0-9a-f]{32}|"output_digest":"[^"]*"`)

// envelope is what was printed, without what differs from run to run.
func (s started) envelope() string {
	text := vary.ReplaceAllString(s.stdout, "")
	if strings.Contains(text, "call_") {
		text = ofCall.ReplaceAllString(text, "")
	}
	return text
}

// own runs this test's program, which is airlock under that name.
func own(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{name}, args...)}
}

// The fast path and the rest of the program print the same, and there is no other
// command line that it could end.
func TestTheVersionIsPrintedBeforeMain(t *testing.T) {
	want := startedOf(t, own(t, "airlock", "version", "--json=false"))
	for _, name := range large {
		if !want.packages[name] {
			t.Errorf("the package %s is not initialised by the rest of the program: name another", name)
		}
	}
	for _, word := range []string{"version", "--version"} {
		got := startedOf(t, own(t, "airlock", word))
		if !got.fast() || got.stdout != want.stdout || got.code != 0 || got.stderr != "" ||
			!strings.HasPrefix(got.stdout, "airlock ") {
			t.Errorf("%s: before main %t: got %d, %q, %q, want %q", word, got.fast(), got.code, got.stdout, got.stderr,
				want.stdout)
		}
	}
}

// The fast path stays small: a package that it imports, and that imports
// much, would be initialised with all of that before it.
func TestTheFastPathImportsLittle(t *testing.T) {
	const module = "github.com/airlock-mcp/airlock/"
	list := exec.Command("go", "list", "-deps", "-f",
		"{{if not .Standard}}{{.ImportPath}}{{end}} {{if eq .ImportPath \"net\"}}net{{end}}", module+"app/fastpath")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	want := []string{
		module + "app/configfile", module + "app/fastpath", module + "app/join", module + "app/release",
		module + "internal/procfs", module + "internal/program", module + "internal/store",
		module + "internal/strictjson",
		module + "internal/truncate", module + "internal/tty", module + "internal/visible",
		"github.com/go-json-experiment/json", "github.com/go-json-experiment/json/internal",
		"github.com/go-json-experiment/json/internal/jsonflags", "github.com/go-json-experiment/json/internal/jsonopts",
		"github.com/go-json-experiment/json/internal/jsonwire", "github.com/go-json-experiment/json/jsontext",
		"github.com/go-json-experiment/json/v1", "golang.org/x/sys/unix",
	}
	if got := slices.Sorted(slices.Values(strings.Fields(string(out)))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// fastAndSlow runs a command line by the fast path and without it, each time with the
// same standard input.
func fastAndSlow(t *testing.T, stdin func() io.Reader, args ...string) (fast, slow started) {
	t.Helper()
	of := func(name string) started {
		cmd := &exec.Cmd{Path: ownProgram(), Args: append([]string{name, "run"}, args...)}
		if stdin != nil {
			cmd.Stdin = stdin()
		}
		return startedOf(t, cmd)
	}
	return of("airlock"), of("slow") // the name of another program has no fast path
}

// If both streams go to the same file, the envelope is a separate line there in both ways.
func TestTheFastPathEndsTheLastLine(t *testing.T) {
	daemonHere(t, "")
	write(t, "half.py", "print('half a line', end='')")
	for _, name := range []string{"airlock", "slow"} {
		cmd := &exec.Cmd{Path: ownProgram(), Args: []string{name, "run", "half.py"}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		lines := strings.SplitAfter(string(out), "\n")
		if len(lines) != 3 || lines[0] != "half a line\n" || !json.Valid([]byte(lines[1])) {
			t.Errorf("%s: got %q, want what the code printed and the envelope as a line each", name, out)
		}
	}
}

// The fast path and the rest of the program print the same for every request and result, and
// the common cases use the fast path.
func TestTheFastPathPrintsTheSame(t *testing.T) {
	t.Setenv("COMMAND", upstreamtest.Program(t))
	t.Setenv("PASSWORD_OF_DESK", "correct-horse-battery")
	daemonHere(t, "mcpServers: {desk: {command: \"${COMMAND}\", env: {PASSWORD: \"${PASSWORD_OF_DESK}\"}}}\nservers: "+
		"{desk: {trustAnnotations: true, deny: [count]}}\nprofiles: {most: {default: true, servers: {desk: [echo, "+
		"count]}}, small: {servers: {desk: [count]}}}\n")
	for name, program := range map[string]string{
		"works.py": "result = 1", "works.js": "globalThis.result = 1", "names.txt": "result = 1",
		"prints.py": "import sys\nprint('out', '\\x1b[31m')\nprint('err correct-horse-battery', file=sys.stderr)\n" +
			"result = 1",
		"calls.py":   "from servers.desk import echo\nresult = (await echo(text='a')).data",
		"slow.py":    "while True: pass",
		"seen.py":    "import servers.desk\nresult = [hasattr(servers.desk, name) for name in ('echo', 'slow_read')]",
		"denied.py":  "from servers.desk import count\nresult = await count()",
		"fails.py":   "raise KeyError('x')",
		"pretend.py": "class PolicyDenied(Exception): pass\nraise PolicyDenied('x')",
		"empty.py":   " \n", "binary.py": "result = '\xff'", "large.py": "#" + strings.Repeat("x", 2<<20),
		"long.py": "#" + strings.Repeat("x", 1<<20) + "\nresult = 1",
	} {
		write(t, name, program)
	}
	text := func(program string) func() io.Reader { return func() io.Reader { return strings.NewReader(program) } }
	fast, slow := true, false
	for _, test := range []struct {
		args  string
		stdin func() io.Reader
		fast  bool
	}{
		{"works.py", nil, fast}, {"works.js", nil, fast}, {"--json works.py", nil, fast},
		{"works.py --lang=py", nil, fast}, {"names.txt --lang node", nil, fast},
		{"prints.py", nil, fast}, {"calls.py", nil, fast}, {"denied.py", nil, fast}, {"fails.py", nil, fast},
		{"pretend.py", nil, fast}, {"long.py", nil, fast},
		{"works.py --timeout=5s", nil, fast}, {"slow.py --timeout 300ms", nil, fast},
		{"works.py --profile=small", nil, fast}, {"seen.py --profile small", nil, fast}, {"seen.py", nil, fast},
		{"works.py --config airlock.yaml", nil, fast}, {"works.py --config=./airlock.yaml", nil, fast},
		{"", text("result = 2"), fast}, {"-", text("result = 2"), fast},
		{"- --lang js", text("globalThis.result = 2"), fast},
		{"-", text(""), slow}, {"-", text(strings.Repeat(" ", 3<<20)), slow}, {"-", nil, slow},
		{"empty.py", nil, slow}, {"binary.py", nil, slow}, {"large.py", nil, slow}, {"missing.py", nil, slow},
		{".", nil, slow}, {"/dev/null", nil, slow},
		{"works.py --lang=ruby", nil, slow}, {"works.py --timeout=-5s", nil, slow},
		{"works.py --profile=none", nil, slow}, {"works.py more", nil, slow}, {"works.py --what", nil, slow},
		{"--help", nil, slow}, {"works.py --config /dev/null", nil, slow}, {"works.py --config none.yaml", nil, slow},
	} {
		got, want := fastAndSlow(t, test.stdin, strings.Fields(test.args)...)
		if want.fast() || got.fast() != test.fast {
			t.Errorf("%q: before main: %t, want %t", test.args, got.fast(), test.fast)
		}
		if a, b := got.envelope(), want.envelope(); a != b || got.stderr != want.stderr || got.code != want.code {
			t.Errorf("%q: got %d\n%s\n%s\nwant, as without the fast path, %d\n%s\n%s", test.args, got.code, a,
				got.stderr, want.code, b, want.stderr)
		}
		if strings.Contains(got.stderr, "correct-horse") {
			t.Errorf("%q: a credential is printed: %s", test.args, got.stderr)
		}
	}
}

// The fast path leaves a run to the rest of the program if a client that reads the configuration
// would behave differently.
func TestTheFastPathIsLeft(t *testing.T) {
	t.Setenv("WHERE", "/tmp")
	configuration := "mcpServers: {desk: {command: " + upstreamtest.Program(t) + ", env: {WHERE: \"${WHERE}\"}}}\n"
	daemonHere(t, configuration)
	write(t, "p.py", "result = 1")
	outcome := func(name string) {
		t.Helper()
		got, want := fastAndSlow(t, nil, "p.py")
		if a, b := got.envelope(), want.envelope(); got.fast() || a != b || got.stderr != want.stderr ||
			got.code != want.code {
			t.Errorf("%s: before main: %t\ngot %d\n%s\n%s\nwant %d\n%s\n%s", name, got.fast(), got.code, a, got.stderr,
				want.code, b, want.stderr)
		}
	}
	if first, _ := fastAndSlow(t, nil, "p.py"); !first.fast() {
		t.Errorf("the fast path is left where nothing differs: %s", first.stderr)
	}
	t.Setenv("WHERE", "/var")
	outcome("a variable of the configuration has another value")
	if err := os.Unsetenv("WHERE"); err != nil {
		t.Fatal(err)
	}
	outcome("a variable of the configuration is not set")
	t.Setenv("WHERE", "/tmp")
	t.Setenv("AIRLOCK_CONFIG", "none.yaml")
	outcome("the configuration is missing")
	t.Setenv("AIRLOCK_CONFIG", "")
	write(t, "airlock.yaml", "mcpServers: {files: [\n")
	outcome("the configuration has a mistake")
	write(t, "airlock.yaml", configuration+"sandbox: {memory: 1GiB}\n")
	outcome("the configuration says something else")
}

// A daemon's socket is used only by the very program that the daemon runs.
func TestTheFastPathTrustsNoOtherProgram(t *testing.T) {
	daemonHere(t, "")
	write(t, "p.py", "result = 1")
	other := filepath.Join(t.TempDir(), "airlock")
	copied, err := os.ReadFile(ownProgram())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, copied, 0o700); err != nil {
		t.Fatal(err)
	}
	got := startedOf(t, &exec.Cmd{Path: other, Args: []string{"airlock", "run", "p.py"}})
	if got.fast() || got.code != 0 {
		t.Errorf("before main: %t: got %d, %s, %s, want a run alone", got.fast(), got.code, got.stdout, got.stderr)
	}
}

// A reader that has gone, and a place that is full, end a run as they do without the
// fast path.
func TestTheFastPathCannotPrint(t *testing.T) {
	daemonHere(t, "")
	write(t, "p.py", "result = 1")
	for name, out := range map[string]func() *os.File{
		"nobody reads": func() *os.File {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			return w
		},
		"the device is full": func() *os.File {
			f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f
		},
	} {
		var ends []string
		for _, program := range []string{"airlock", "slow"} {
			to := out()
			s := startedOf(t, &exec.Cmd{Path: ownProgram(), Args: []string{program, "run", "p.py"}, Stdout: to})
			to.Close()
			ends = append(ends, fmt.Sprintf("%d %s", s.code, s.stderr))
		}
		if ends[0] != ends[1] {
			t.Errorf("%s: got %s, want %s", name, ends[0], ends[1])
		}
	}
}

// At a terminal, control characters are written as escapes, whether the program ends before or
// after the message that it is waited for. The result is shown without its envelope.
func TestTheFastPathAtATerminal(t *testing.T) {
	daemonHere(t, "")
	write(t, "quick.py", "print('\\x1b[31mred')\nresult = 'done quick'")
	write(t, "slow.py", "import time\ntime.sleep(1)\nprint('\\x1b[31mred')\nresult = 'done slow'")
	for _, name := range []string{"quick", "slow"} {
		terminal := testenv.Terminal(t, exec.Command(ownProgram(), "run", name+".py"))
		var shown strings.Builder
		for buffer := make([]byte, 4096); !strings.Contains(shown.String(), "done "+name) ||
			!strings.Contains(shown.String(), "run_"); {
			n, err := terminal.Read(buffer)
			shown.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		if text := shown.String(); !strings.Contains(text, "done "+name) || !strings.Contains(text, "[31mred") ||
			strings.Contains(text, "\x1b[31m") || strings.Contains(text, `"run_id"`) {
			t.Errorf("%s: the terminal shows %q", name, text)
		}
	}
}

// A program whose client is interrupted, however early, is cancelled and leaves its line,
// unless the client had not begun to listen.
func TestTheFastPathIsInterrupted(t *testing.T) {
	daemonHere(t, "")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(ownProgram(), "run")
		cmd.Args[0] = "airlock"
		var stdout, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if _, err := io.WriteString(w, "import time\ntime.sleep(25)"); err != nil {
			t.Fatal(err)
		}
		w.Close()
		awaitRun(t)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
			strings.Count(stdout.String(), "\n") != 1 || !strings.Contains(stdout.String(), "cancelled") {
			t.Errorf("%v: got %v, %s, %s, want exit code 1 and that it was cancelled", signal, err, &stdout, &stderr)
		}
	}
}
