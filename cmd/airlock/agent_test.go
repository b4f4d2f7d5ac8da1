package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// installation is a separate Airlock with the existing images.
type installation struct {
	*testing.T
	env  []string
	home string
	dir  string // that the servers may use
	file string // the configuration
}

func newInstallation(t *testing.T, config string, images ...string) *installation {
	t.Helper()
	built := testenv.Sandbox(t)
	home, dir := testenv.NewHome(t, built, images...), t.TempDir()
	server := filepath.Join(testenv.RepoRoot(t), "test", "servers", "node_modules", "@modelcontextprotocol",
		"server-filesystem", "dist", "index.js")
	i := &installation{T: t, home: home, dir: dir, file: filepath.Join(home, "airlock.yaml")}
	text := fmt.Sprintf(
		"mcpServers: {files: {command: node, args: [%q, %q]}}\nservers: {files: {trustAnnotations: true, allow: "+
			"['*']}}\n%s", server, dir, config)
	if !strings.Contains(config, "serve:") {
		text += testenv.HostIsAProxy
	}
	if err := os.WriteFile(i.file, []byte(testenv.WithoutPool(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	i.env = append(os.Environ(), "AIRLOCK_HOME="+home, "AIRLOCK_RUNSC="+built.Runsc, "AIRLOCK_CONFIG=")
	return i
}

func (i *installation) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(testenv.RepoRoot(i.T), "bin", "airlock"), args...)
	cmd.Env = i.env
	return cmd
}

// airlock runs a verb to its end and returns what it printed.
func (i *installation) airlock(args ...string) string {
	i.Helper()
	cmd := testenv.AtTerminal(i, i.command(append(args, "--config", i.file)...))
	cmd.Stderr = i.Output()
	out, err := cmd.Output()
	if err != nil {
		i.Fatalf("airlock %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// serve starts `airlock serve` until the test ends, and returns its address.
func (i *installation) serve() string {
	i.Helper()
	cmd := i.command("serve", "--config", i.file, "--listen", "127.0.0.1:0")
	cmd.Stderr = i.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			i.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			i.Errorf("airlock serve: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		i.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// agent registers an agent and returns its ID and its token.
func (i *installation) agent(args ...string) (id, token string) {
	i.Helper()
	var made struct {
		ID    string `json:"agent_id"`
		Token string `json:"agent_token"`
	}
	if err := json.Unmarshal([]byte(i.airlock(append([]string{"agents", "create", "--json"}, args...)...)),
		&made); err != nil {
		i.Fatal(err)
	}
	return made.ID, made.Token
}

// agentToken sends an agent's token with each request.
type agentToken string

func (a agentToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Agent-Token", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// conversation is an agent's session of MCP, as a program of the agent has it.
type conversation struct {
	*testing.T
	session *mcp.ClientSession
}

func (i *installation) converse(url, token string) *conversation {
	i.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			i.Error("A-048: an agent was asked to approve what it does")
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve this call"}}, nil
		},
	})
	session, err := client.Connect(i.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp",
		HTTPClient: &http.Client{Transport: agentToken(token)}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		i.Fatal(err)
	}
	c := &conversation{i.T, session}
	i.Cleanup(c.end)
	return c
}

func (c *conversation) end() { _ = c.session.Close() } // a second time is an error

// try calls one of Airlock's tools and returns what stopped the agent, as the model reads
// it, or "".
func (c *conversation) try(tool string, args map[string]any, place ...string) (stopped string, answer runState) {
	c.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if len(place) > 0 {
		params.Meta = mcp.Meta{"io.github.airlock-mcp/context": json.RawMessage(place[0])}
	}
	res, err := c.session.CallTool(c.Context(), params)
	if err != nil {
		c.Fatal(err)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		c.Fatal(err)
	}
	var envelope struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		c.Fatalf("%v in %s", err, raw)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		c.Fatalf("%v in %s", err, raw)
	}
	if res.IsError && envelope.Error.Type == "" {
		c.Fatalf("%s", raw)
	}
	return strings.TrimSpace(envelope.Error.Type + " " + envelope.Error.Message), answer
}

func python(code string) map[string]any { return map[string]any{"language": "python", "code": code} }

func list(dir string) map[string]any {
	return map[string]any{"server": "files", "tool": "list_directory", "arguments": map[string]any{"path": dir}}
}

// An agent that works in a loop over MCP, with its token, in real sandboxes and on a real
// server, is stopped by each of the four loops, by the matrix, by its permissions, by its
// budget and by its suspension. The log records each of them.
//
func TestAnAgentsLoopIsStopped(t *testing.T) {
	i := newInstallation(
		t, "agents: {rate: 100000/m, prices: {run_code: 0.5, files/list_directory: 0.01}, secondPrice: 0.001}\nface: "+
			"{callTool: true}\n", "python")
	url := i.serve()
	id, token := i.agent("Looper", "--allowed-tool", "files/list_directory,files/write_file", "--daily-usd", "4.5")
	c := i.converse(url, token)
	expect := func(name, want, got string) {
		t.Helper()
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: stopped by %q, want %q", name, got, want)
		}
	}
	reads := fmt.Sprintf(
		"from servers import files\nlisted = await files.list_directory({'path': %q})\nresult = 'listed'\n", i.dir)

	stopped, answer := c.try("run_code", python(reads))
	if expect("a run that reads", "", stopped); string(answer.Data) != `"listed"` {
		t.Errorf("it returned %s", answer.Data)
	}
	stopped, _ = c.try("run_code", python(reads+"# again"))
	expect("its second identical call in a row", "", stopped)
	stopped, _ = c.try("run_code", python(reads+"# and again"))
	expect("the third, of code", "LoopDetected QWED-AGENT-LOOP-003", stopped)
	stopped, _ = c.try("run_code",
		python(fmt.Sprintf("from servers import files\nawait files.write_file({'path': %q, 'content': 'x'})",
			filepath.Join(i.dir, "new"))))
	expect("a call that writes, by a supervised agent", "PolicyDenied QWED-AGENT-POLICY-001: ", stopped)
	stopped, _ = c.try("call_tool", map[string]any{"server": "files", "tool": "read_text_file",
		"arguments": map[string]any{"path": "x"}})
	expect("a tool that was not allowed",
		"PolicyDenied QWED-AGENT-POLICY-001: Unknown tool 'files/read_text_file' requires explicit allowlisting",
		stopped)
	if _, err := os.Stat(filepath.Join(i.dir, "new")); !os.IsNotExist(err) {
		t.Errorf("the file was written: %v", err)
	}

	// The budget: 4.5 dollars, of which four runs took 0.5 each.
	state := func(n int) string {
		return fmt.Sprintf(`{"pre_action_state_hash": %q, "state_source": "file_tree"}`,
			strings.Repeat(fmt.Sprint(n), 64))
	}
	for n, want := range []string{"", "", "", "", "LoopDetected QWED-AGENT-LOOP-004"} {
		stopped, _ = c.try("call_tool", list([]string{i.dir, "/other"}[n%2]), state(1))
		if n%2 == 1 { // the server refuses a directory that is not its own
			want = "ToolError"
		}
		expect(fmt.Sprintf("call %d on an unchanged state", n+1), want, stopped)
	}
	stopped, _ = c.try("call_tool", list(i.dir), state(2))
	expect("on another state", "", stopped)
	stopped, _ = c.try("call_tool", list("/a"), `{"step_number": 1}`)
	expect("a step that is taken", "LoopDetected QWED-AGENT-LOOP-002", stopped)
	steps := 4 + 5 // runs and calls that were approved
	for ; steps < 50; steps++ {
		stopped, _ = c.try("call_tool", list(fmt.Sprintf("/%d", steps)))
		expect(fmt.Sprintf("step %d", steps+1), "ToolError", stopped)
	}
	stopped, _ = c.try("call_tool", list(i.dir))
	expect("step 51", "LoopDetected QWED-AGENT-LOOP-001", stopped)
	c.end()

	c = i.converse(url, token) // another conversation, the same money
	for n := 0; ; n++ {
		if stopped, _ = c.try("run_code", python(fmt.Sprint("result = ", n))); stopped != "" {
			expect("the money is spent", "BudgetExceeded QWED-AGENT-BUDGET-001", stopped)
			break
		}
	}
	var shown struct {
		Budget struct {
			Day struct {
				Cost json.Number `json:"cost_usd"`
			}
		}
		Activity []struct{ Decision, ErrorCode, ActionType string }
	}
	if err := json.Unmarshal([]byte(i.airlock("agents", "show", id, "--json", "-n", "1000")), &shown); err != nil {
		t.Fatal(err)
	}
	if cost, err := shown.Budget.Day.Cost.Float64(); err != nil || cost+0.56 <= 4.5 || cost > 4.5 {
		t.Errorf("%v USD are spent, want less than another run costs to be left of 4.5", cost)
	}
	if first := shown.Activity[0]; first.Decision != "BUDGET_EXCEEDED" || len(shown.Activity) < 60 {
		t.Errorf("%d entries, the newest %+v", len(shown.Activity), first)
	}
}

// A run of an agent ends when the agent is suspended, and a killed one's token is no
// credential any more. A-036: an untrusted agent begins no run by itself.
func TestAnAgentIsSuspendedAndKilled(t *testing.T) {
	i := newInstallation(t, "face: {callTool: true}\n", "python")
	url := i.serve()
	id, token := i.agent("Sleeper", "--type", "trusted")
	c := i.converse(url, token)
	_, started := c.try("run_code", map[string]any{"language": "python", "background": true,
		"code": "print('begun', flush=True)\nimport time\ntime.sleep(20)"})
	until(t, c.session, started.RunID, func(r runState) bool { return r.Stdout != "" })
	i.airlock("agents", "suspend", id)
	ended, text := until(t, c.session, started.RunID, func(r runState) bool { return r.State == "done" })
	if ended.Error.Type != "Killed" || !strings.Contains(text, "the agent was suspended or ended") {
		t.Errorf("%+v, %s", ended, text)
	}
	// The daemon may notice that the agent is suspended while the policies decide.
	if stopped, _ := c.try("run_code", python("result = 1")); !strings.Contains(stopped, "suspended") || !strings.
		HasPrefix(stopped, "PolicyDenied QWED-AGENT-POLICY-001") && !strings.HasPrefix(stopped, "Killed") {
		t.Errorf("a suspended agent: %q", stopped)
	}
	if stopped, _ := c.try("call_tool", list(i.dir)); !strings.HasPrefix(
		stopped, "PolicyDenied QWED-AGENT-POLICY-001") {
		t.Errorf("its call: %q", stopped)
	}
	i.airlock("agents", "resume", id)
	if stopped, _ := c.try("run_code", python("result = 1")); stopped != "" {
		t.Errorf("a resumed agent: %q", stopped)
	}
	i.airlock("agents", "kill", id)
	if _, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code",
		Arguments: python("result = 1")}); err == nil {
		t.Error("a killed agent is served")
	}

	_, token = i.agent("Nobody's", "--type", "untrusted")
	c = i.converse(url, token)
	_, started = c.try("run_code", map[string]any{"language": "python", "background": true,
		"code": "result = 'approved'"})
	waiting, _ := until(t, c.session, started.RunID, func(r runState) bool { return len(r.Waiting) > 0 })
	if len(waiting.Waiting) != 1 || waiting.Waiting[0].ToolName != "run_code" ||
		!strings.Contains(waiting.Waiting[0].Answer, "airlock approvals") {
		t.Fatalf("%+v", waiting)
	}
	if out, err := i.command("approvals", "deny", waiting.Waiting[0].ID).CombinedOutput(); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	if got, text := until(t, c.session, started.RunID,
		func(r runState) bool { return r.State == "done" }); got.Error.Type != "ApprovalDenied" {
		t.Errorf("%+v, %s", got, text)
	}
}

// `airlock mcp` serves an agent whose token is in its environment, and no agent if that
// token is invalid.
func TestAnAgentOnStdio(t *testing.T) {
	i := newInstallation(t, "", "python")
	id, token := i.agent("Stdio", "--type", "supervised")
	ann := newPerson(t)
	program := i.command().Path
	// the host, which is younger than the person's terminal
	cmd := exec.Command("sh", "-c", fmt.Sprintf("cat | %s mcp --config %s; :", program, i.file))
	cmd.Env = append(i.env, "AIRLOCK_AGENT_TOKEN="+token)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &conversation{t, session}
	t.Cleanup(c.end)
	for _, want := range []string{"", "", "LoopDetected QWED-AGENT-LOOP-003"} {
		stopped, answer := c.try("run_code", python("import os\nresult = 'AIRLOCK_AGENT_TOKEN' in os.environ"))
		if !strings.HasPrefix(stopped, want) || (want == "") != (string(answer.Data) == "false") {
			t.Errorf("stopped by %q with %s, want %q", stopped, answer.Data, want)
		}
	}
	if got := ann.does(fmt.Sprintf("env AIRLOCK_HOME=%s %s agents rotate %s --config %s", i.home, program, id,
		i.file)); !strings.HasPrefix(got, "0 ") {
		t.Fatalf("rotating the token: %s", got)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code",
		Arguments: python("result = 2")}); err == nil {
		t.Error("the old token is served")
	}
	for _, wrong := range []string{token, "", "qwed_agent_" + strings.Repeat("0", 64),
		"airlock_" + strings.Repeat("0", 64)} {
		cmd := i.command("mcp", "--config", i.file)
		cmd.Env = append(cmd.Env, "AIRLOCK_AGENT_TOKEN="+wrong)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 ||
			!strings.Contains(string(exit.Stderr), "AIRLOCK_AGENT_TOKEN is not a valid token") || len(out) > 0 {
			t.Errorf("%.20q: %v, %s", wrong, err, out)
		}
	}
}

// The gateway's face on stdio knows agents as well.
func TestAnAgentAtTheGateway(t *testing.T) {
	i := newInstallation(t, "", "python", "verify")
	_, free := i.agent("Free", "--type", "supervised")
	_, bound := i.agent("Bound", "--type", "trusted", "--blocked-tool", "execute_code")
	for token, want := range map[string]string{free: "Expected 14490.97, got 14499.48",
		bound: "QWED-AGENT-POLICY-001"} {
		cmd := i.command("mcp", "--face", "gateway", "--config", i.file)
		cmd.Env = append(cmd.Env, "AIRLOCK_AGENT_TOKEN="+token, "QWED_MCP_TRUSTED_CODE_EXECUTION=true")
		client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_python_code",
			Arguments: map[string]any{
				"code": "assert False, 'Expected 14490.97, got 14499.48'",
			}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(res)
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s, %v, want %q", raw, err, want)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	cmd := i.command("mcp", "--face", "gateway", "--config", i.file)
	cmd.Env = append(cmd.Env, "AIRLOCK_AGENT_TOKEN=qwed_agent_none")
	if out, err := cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "is not a valid token of an agent") {
		t.Errorf("%v, %s", err, out)
	}
}

// Each analysis of the gateway counts, even if the code does not run, and each run counts as a run as well.
func TestAnalysesAtTheGatewayAreDebited(t *testing.T) {
	i := newInstallation(t, "agents: {prices: {verify_code: 2, run_code: 1}}\n", "python", "verify")
	id, token := i.agent("Poor", "--type", "supervised", "--daily-usd", "6")
	cmd := i.command("mcp", "--face", "gateway", "--config", i.file)
	cmd.Env = append(cmd.Env, "AIRLOCK_AGENT_TOKEN="+token, "QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ code, want string }{
		{"eval(input())", "QWED blocked python execution"}, {"print(6*7)", "42"},
		{"print(6*7)", "QWED-AGENT-BUDGET-001"},
	} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_python_code",
			Arguments: map[string]any{"code": step.code}})
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(res); err != nil || !strings.Contains(string(raw), step.want) {
			t.Errorf("%s: %s, %v, want %q", step.code, raw, err, step.want)
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	var shown struct {
		Activity []struct {
			Type     string `json:"action_type"`
			Decision string
			Cost     string `json:"cost_usd"`
		}
	}
	if err := json.Unmarshal([]byte(i.airlock("agents", "show", id, "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(
		shown.Activity); got != "[{verify_code BUDGET_EXCEEDED } {run_code APPROVED 1} {verify_code APPROVED 2} "+
		"{verify_code APPROVED 2}]" {
		t.Errorf("got %s", got)
	}
}
