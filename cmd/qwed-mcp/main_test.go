package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/cli"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// asProgram has this test binary be the program.
const asProgram = "QWED_MCP_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// install is a state directory for the program, with a separate audit log.
type install struct {
	*testing.T
	env   testenv.Env
	file  string // the configuration
	audit string
}

func newInstall(t *testing.T) *install {
	t.Helper()
	i := &install{T: t, env: testenv.OwnHome(t)}
	dir := t.TempDir()
	i.file, i.audit = filepath.Join(dir, "airlock.yaml"), filepath.Join(dir, "audit")
	if err := os.WriteFile(i.file, []byte("audit: {path: "+i.audit+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// trusted is the administrator's switch.
const trusted = "QWED_MCP_TRUSTED_CODE_EXECUTION=true"

// command is the program with an environment.
func (i *install) command(env ...string) *exec.Cmd {
	i.Helper()
	self, err := os.Executable()
	if err != nil {
		i.Fatal(err)
	}
	cmd := exec.Command(self, "--config", i.file)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), asProgram + "=1", "AIRLOCK_HOME=" + i.env.Home,
		"AIRLOCK_RUNSC=" + i.env.Runsc,
	}, env...)
	cmd.Stderr = i.Output()
	return cmd
}

// host is an agent host that has started the program.
type host struct {
	*install
	session *mcp.ClientSession
	process *os.Process
}

func (i *install) host(env ...string) *host {
	i.Helper()
	cmd := i.command(env...)
	client := mcp.NewClient(&mcp.Implementation{Name: "test-host", Version: "1.2"}, nil)
	session, err := client.Connect(i.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() { _ = session.Close() }) // a test may have killed it
	return &host{i, session, cmd.Process}
}

// call calls a tool and returns its result with its first text.
func (h *host) call(tool string, arguments map[string]any) (*mcp.CallToolResult, string) {
	h.Helper()
	res, err := h.session.CallTool(h.Context(), &mcp.CallToolParams{
		Name: tool, Arguments: arguments, Meta: mcp.Meta{"io.github.airlock-mcp/model": "test-model"},
	})
	if err != nil {
		h.Fatal(err)
	}
	return res, res.Content[0].(*mcp.TextContent).Text
}

func (h *host) run(code string) string {
	h.Helper()
	_, text := h.call("execute_python_code", map[string]any{"code": code})
	return text
}

var dispatched = regexp.MustCompile(
	`^Verification order is being placed for the request ([0-9a-f-]{36})\. Check back using the ` +
		`'verification_status' tool\.$`)

func (h *host) dispatch(code string) string {
	h.Helper()
	_, text := h.call("execute_python_code", map[string]any{"code": code, "background": true})
	found := dispatched.FindStringSubmatch(text)
	if found == nil {
		h.Fatalf("got %q, want the dispatch text", text)
	}
	return found[1]
}

func (h *host) status(job string) string {
	h.Helper()
	_, text := h.call("verification_status", map[string]any{"job_id": job})
	return text
}

// await asks for a job until it is over, or as wanted.
func (h *host) await(job, wanted string) string {
	h.Helper()
	for {
		if text := h.status(job); text == wanted || !strings.HasSuffix(text, "...") {
			return text
		}
	}
}

// log is the audit log as it is.
func (i *install) log() string {
	i.Helper()
	files, err := filepath.Glob(filepath.Join(i.audit, "audit-*.jsonl"))
	if err != nil || len(files) == 0 {
		i.Fatalf("no audit log: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			i.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// airlock runs a verb of the command line and returns what it prints.
func (i *install) airlock(args ...string) string {
	i.Helper()
	i.Setenv("AIRLOCK_HOME", i.env.Home)
	var out, problems bytes.Buffer
	if code := cli.Main(context.WithoutCancel(i.Context()), append(args, "--config", i.file), strings.NewReader(""),
		&out, &problems); code != 0 {
		i.Fatalf("airlock %v: exit code %d, %s", args, code, &problems)
	}
	return out.String()
}

// refused starts the program, which must exit by itself, and returns its output.
func (i *install) refused(env ...string) string {
	i.Helper()
	cmd := i.command(env...)
	cmd.Stderr = nil
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() <= 0 || len(out) > 0 {
		i.Fatalf("got %v and %q on stdout, want that nothing is served", err, out)
	}
	return string(exit.Stderr)
}
