package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The trace of the host, and words that must never be exported.
const (
	hostTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	hostSpan  = "00f067aa0ba902b7"

	canaryCode     = "canary-in-the-code"
	canaryArgument = "canary-in-an-argument"
	canaryResult   = "canary-in-a-result"
	canaryLog      = "canary-that-was-printed"
	canaryError    = "CanaryRaised"
	// hangUp has the server end the connection, which Airlock logs.
	hangUp = "hang-up"

	canarySecret = "canary-credential-7d1f0c"
)

// upstream is an MCP server over HTTP that remembers in which trace it was called.
func upstream(t *testing.T) (url string, traceparent func() string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)
	var seen string
	type input struct {
		Word string `json:"word"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "lookup", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			seen, _ = req.Params.Meta["traceparent"].(string)
			if in.Word == "" {
				return nil, nil, fmt.Errorf("no word: %s", canaryResult)
			}
			return nil, map[string]string{"text": canaryResult}, nil
		})
	face := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte(hangUp)) {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		face.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, func() string { return seen }
}

// airlock returns the program with additional variables and a configuration whose only
// working server is at url.
func airlock(t *testing.T, url string, env []string, arguments ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	config := fmt.Sprintf(`
mcpServers:
  up: {url: %q}
  broken: {command: sh, args: [-c, "echo token=$TOKEN >&2; exit 3"], env: {TOKEN: %s}}
servers:
  up: {trustAnnotations: true}
`, url, canarySecret)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), append(arguments, "--config", file)...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// runCode has the program run code for a host that names its trace, and returns the envelope.
func runCode(t *testing.T, cmd *exec.Cmd, code string) map[string]any {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Meta: mcp.Meta{"traceparent": "00-" + hostTrace + "-" + hostSpan + "-01"},
		Name: "run_code", Arguments: map[string]any{"language": "python", "code": code},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.Meta["io.github.airlock-mcp/envelope"])
	if err != nil {
		t.Fatal(err)
	}
	var envelope map[string]any
	if err := json.Unmarshal(raw, &envelope); err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Fatalf("airlock ended: %v", err)
	}
	return envelope
}

func TestOneTraceFromTheHostToTheServer(t *testing.T) {
	testenv.OwnHome(t, "python")
	collector := startCollector(t)
	url, traceparent := upstream(t)
	cmd := airlock(t, url, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.Endpoint,
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_METRIC_EXPORT_INTERVAL=50"}, "mcp")
	envelope := runCode(t, cmd, fmt.Sprintf(`
from servers import up
print(%q)
try:
    await up.lookup(word=%q)
except Exception as error:
    print(error)
answer = await up.lookup(word=%q)
class %s(Exception): pass
raise %s(%q)
`, canaryLog, hangUp, canaryArgument, canaryError, canaryError, canaryCode))
	if envelope["trace_id"] != hostTrace {
		t.Errorf("the envelope is of the trace %v", envelope["trace_id"])
	}
	all, err := collector.Stop()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := all.Chain(hostTrace, hostSpan, "tools/call run_code", "airlock.run", "airlock.sandbox.execute",
		"airlock.call", "tools/call lookup")
	if err != nil {
		t.Error(err)
	}
	if want := "00-" + hostTrace + "-" + parent + "-01"; traceparent() != want {
		t.Errorf("the server was called in %q, want %q", traceparent(), want)
	}
	if acquire := all.Spans["airlock.sandbox.acquire"]; acquire.ParentSpanID != all.Spans["airlock.run"].SpanID {
		t.Errorf("acquire is below %q", acquire.ParentSpanID)
	}
	for name, want := range map[string]map[string]string{
		"tools/call run_code": {"mcp.method.name": "tools/call", "gen_ai.tool.name": "run_code",
			"gen_ai.operation.name": "execute_tool", "network.transport": "pipe", "error.type": "tool_error"},
		"airlock.run": {"airlock.language": "python", "error.type": "exception"},
		"airlock.call": {"airlock.server.id": "up", "gen_ai.tool.name": "lookup", "airlock.decision": "allow",
			"error.type": ""},
		"tools/call lookup": {"airlock.server.id": "up", "network.transport": "tcp", "error.type": ""},
	} {
		for key, value := range want {
			if got := all.Spans[name].Of(key); got != value {
				t.Errorf("%s of %s is %q, want %q", key, name, got, value)
			}
		}
	}
	for _, name := range []string{"mcp.server.operation.duration", "mcp.client.operation.duration",
		"airlock.run.duration", "airlock.sandbox.acquire.duration", "airlock.call.duration",
		"airlock.audit.append.duration", "airlock.sandbox.ready", "airlock.queue.waiting", "airlock.approval.open"} {
		if !all.Metrics[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
	if !all.Services["airlock"] || len(all.Services) != 1 {
		t.Errorf("services: %v", all.Services)
	}
	if len(all.Logs) == 0 {
		t.Error("no log record arrived, though a call failed")
	}
	for _, canary := range []string{canaryCode, canaryArgument, canaryResult, canaryLog, canaryError, canarySecret} {
		if strings.Contains(all.Raw, canary) {
			t.Errorf("%s was exported", canary)
		}
	}
}

func TestWhatCannotBeExportedIsLostAndNothingElse(t *testing.T) {
	testenv.OwnHome(t, "python")
	url, _ := upstream(t)
	cmd := airlock(t, url, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + testenv.ReservedAddress(t),
		"OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_EXPORTER_OTLP_TIMEOUT=500"}, "mcp")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	envelope := runCode(t, cmd, "result = 6 * 7")
	if result, _ := envelope["result"].(map[string]any); result["data"] != 42.0 {
		t.Errorf("the run came to %v", envelope)
	}
	if n := strings.Count(stderr.String(), "telemetry is lost"); n != 1 {
		t.Errorf("the loss is told %d times, want once:\n%s", n, stderr.String())
	}
}

func TestTheConsoleIsNoExporter(t *testing.T) {
	testenv.OwnHome(t, "python")
	cmd := airlock(t, "http://127.0.0.1:9/mcp", []string{"OTEL_TRACES_EXPORTER=console"}, "mcp")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "hint: write otlp") {
		t.Errorf("got %v, stdout %q, stderr %q", err, stdout.String(), stderr.String())
	}
}
