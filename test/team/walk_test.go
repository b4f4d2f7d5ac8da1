// Package team tests serving a team from beginning to end, with the real program and no
// fakes: one daemon, two hosts, a sign-in at an OpenID provider, questions that a person
// answers at a host and in a browser, and the trace in an OpenTelemetry Collector.
// docs/serving.md describes the same steps for people.
package team

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/browser"
	"github.com/airlock-mcp/airlock/test/telemetry"
)

// The trace of the host's request.
const (
	hostTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	hostSpan  = "00f067aa0ba902b7"
)

// program is the real one, after testenv.OwnHome.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(filepath.Join(testenv.RepoRoot(t), "bin", "airlock"),
		append(args, "--config", os.Getenv("AIRLOCK_TEST_CONFIGURATION"))...)
}

// airlock runs a verb and returns what it printed.
func airlock(t *testing.T, args ...string) string {
	t.Helper()
	cmd := testenv.AtTerminal(t, program(t, args...))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("airlock %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// login signs the user in to a server, as a person with a browser does.
func login(t *testing.T, server string) {
	t.Helper()
	cmd := program(t, "login", server, "--no-browser", "--json")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http") {
			if err := signIn(lines.Text()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(stdout.String(), `"signed_in":true`) {
		t.Fatalf("login: %v, %s", err, stdout.String())
	}
}

// host is an agent host.
type host struct {
	*mcp.ClientSession
	asked chan string // messages of questions to its person
}

// connect connects a host. If asks is set, a simulated person at the host agrees to every call, and signs in nowhere.
func connect(t *testing.T, transport mcp.Transport, asks bool) host {
	t.Helper()
	h := host{asked: make(chan string, 10)}
	options := &mcp.ClientOptions{}
	if asks {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if strings.HasPrefix(r.Params.Message, "Sign in to the server") {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			h.asked <- r.Params.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve this call"}}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, options)
	var err error
	if h.ClientSession, err = client.Connect(t.Context(), transport,
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() }) // the second time it is closed already
	return h
}

// ran is how a run ended.
type ran struct {
	OK    bool
	Data  any
	Error struct{ Message string }
}

// run runs a program in the host's trace.
func (h host) run(t *testing.T, code string) (ran, string) {
	t.Helper()
	result, err := h.CallTool(t.Context(), &mcp.CallToolParams{
		Meta: mcp.Meta{"traceparent": "00-" + hostTrace + "-" + hostSpan + "-01"},
		Name: "run_code", Arguments: map[string]any{"language": "python", "code": code},
	})
	if err != nil {
		t.Error(err)
		return ran{}, err.Error()
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Error(err)
		return ran{}, err.Error()
	}
	var whole struct{ StructuredContent ran }
	if err := json.Unmarshal(raw, &whole); err != nil {
		t.Error(err)
		return ran{}, err.Error()
	}
	return whole.StructuredContent, string(raw)
}

const adding = "from servers.calendar import add_event\nresult = (await add_event({'what': %q})).structured_content"

// C-094 to C-103: start the daemon, connect two hosts, sign in to a server, answer a
// question in the browser, and find the trace in a collector.
func TestServingATeam(t *testing.T) {
	testenv.OwnHome(t, "python")
	collector, err := telemetry.StartCollector(t.Context(), filepath.Join(testenv.RepoRoot(t), "bin", "otelcol"),
		t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Kill)
	server := startCalendar(t, testenv.StartOpenIDProvider(t).Issuer)
	configuration := filepath.Join(t.TempDir(), "airlock.yaml")
	text := fmt.Sprintf("mcpServers: {calendar: {url: %q}}\nservers: {calendar: {oauth: {clientId: airlock}}}\n",
		server.url)
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AIRLOCK_TEST_CONFIGURATION", configuration)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.Endpoint)

	address := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0")
	t.Cleanup(func() { _ = program(t, "stop").Run() }) // the second time it has ended already
	token := airlock(t, "tokens", "create", "laptop", "--for", setup.Principal())
	// Before a host is connected, from whose processes no such token can be made.
	admin := airlock(t, "tokens", "create", "--scope", "admin", "--for", setup.Principal(), "browser")
	overHTTP := connect(t, &mcp.StreamableClientTransport{Endpoint: address + "/mcp",
		HTTPClient: testenv.Bearer(token)}, false)
	onStdio := connect(t, &mcp.CommandTransport{Command: program(t, "mcp")}, true)
	var status struct{ Hosts int }
	if err := json.Unmarshal([]byte(airlock(t, "status", "--json")), &status); err != nil || status.Hosts != 1 {
		t.Errorf("%d hosts have joined through the socket, %v, want one beside the one over HTTP", status.Hosts, err)
	}

	if got, raw := onStdio.run(t, fmt.Sprintf(adding, "too early")); got.OK ||
		!strings.Contains(raw, "airlock login calendar") {
		t.Errorf("before the sign-in: got %s, want what the user has to do", raw)
	}
	login(t, "calendar")
	testenv.Await(t, "the daemon knows of the sign-in", func() bool {
		got, raw := onStdio.run(t, fmt.Sprintf(adding, "event 0"))
		if !got.OK && !strings.Contains(raw, "airlock login calendar") {
			t.Fatalf("the host on stdio got %s", raw)
		}
		return got.OK
	})
	question := testenv.Receive(t, "a question at the host", onStdio.asked)
	if !strings.Contains(question, "add_event") || !strings.Contains(question, "event 0") {
		t.Errorf("the person at the host was asked %q, want the tool and its arguments", question)
	}

	outcome := make(chan string, 1)
	go func() {
		got, raw := overHTTP.run(t, fmt.Sprintf(adding, "event 1"))
		if got.OK {
			raw = "done"
		}
		outcome <- raw
	}()
	ann := browser.Open(t)
	ann.Goto(t, address+"/questions")
	ann.Fill(t, "Token", admin)
	ann.Click(t, "button", "Sign in")
	ann.Sees(t, "1 call waits for a person")
	ann.Goto(t, address+"/runs")
	ann.Sees(t, "1 in progress")
	ann.Goto(t, address+"/questions")
	ann.Click(t, "link", "calendar/add_event")
	ann.Sees(t, "event 1")
	ann.Click(t, "button", "Allow once")
	if raw := testenv.Receive(t, "the end of the run", outcome); raw != "done" {
		t.Errorf("the run whose question was answered in the browser: got %s", raw)
	}
	ann.Goto(t, address+"/runs")
	ann.Sees(t, "No run is in progress")
	ann.NoProblems(t)

	for _, h := range []host{onStdio, overHTTP} {
		if err := h.Close(); err != nil {
			t.Errorf("closing a host: %v", err)
		}
	}
	airlock(t, "stop")
	exported, err := collector.Stop()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := exported.Chain(hostTrace, hostSpan, "tools/call run_code", "airlock.run", "airlock.sandbox.execute",
		"airlock.call", "tools/call add_event")
	if err != nil {
		t.Error(err)
	}
	if asked := exported.Spans["airlock.approval"]; asked.TraceID != hostTrace ||
		asked.Of("airlock.approval.answer") == "" {
		t.Errorf("the question is %+v in the collector", asked)
	}
	changes := server.all()
	if len(changes) != 2 || changes[0].who == "" || changes[0].what != "event 0" || changes[1].what != "event 1" {
		t.Fatalf("the server was called %+v", changes)
	}
	if want := "00-" + hostTrace + "-" + parent + "-01"; changes[1].traceparent != want {
		t.Errorf("the server was called in %q, want %q", changes[1].traceparent, want)
	}
}
