package code

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

func TestFailedRunIsAnError(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "fail"})
	if !res.IsError || !strings.Contains(textOf(res), "ValueError: no") || res.StructuredContent == nil {
		t.Errorf("got %s (isError %v), want the failure as an error", textOf(res), res.IsError)
	}
}

func TestHugeCodeIsRefused(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": strings.Repeat("x", 10<<20)})
	if want := "the code is too long\nhint: write less"; !res.IsError || textOf(res) != want {
		t.Errorf("got %q, want %q", textOf(res), want)
	}
}

// An error of the operating system is reported in one sentence, without file names and steps.
func TestAMachineThatLacksSomethingIsOneSentence(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "starve"})
	if want := "Airlock could not do this on its machine: too many open files\nhint: send it again once; if it fails " +
		"again, tell the user: Airlock's own log has details"; !res.IsError || textOf(res) != want {
		t.Errorf("got %q, want %q", textOf(res), want)
	}
}

func TestLongTextIsCutAndSaysSo(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "large"})
	text := res.Content[0].(*mcp.TextContent).Text
	if len(text) > maxText || !strings.ContainsRune(text, 'ä') || strings.ContainsRune(text, '\uFFFD') ||
		!strings.Contains(text, "[cut here: the answer has 50") || !strings.HasSuffix(text, "inside the program.]") {
		t.Errorf("got %d bytes ending in %q, want at most %d and a note about the cut", len(text),
			text[max(0, len(text)-200):], maxText)
	}
	data := dataOf(res).(string)
	if len(data) != 50_000 {
		t.Errorf("got %d bytes of data, want all 50000", len(data))
	}
}

func TestBackgroundRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		var id string
		state := func() any {
			return structuredOf(callTool(t, session, "get_run", map[string]any{"run_id": id}))["state"]
		}
		id = "run_none"
		if got := state(); got != "unknown" {
			t.Fatalf("got state %v of no run, want unknown", got)
		}
		res := callTool(t, session, "run_code", map[string]any{"language": "node", "code": "wait", "background": true})
		id = runIDOf(res)
		if got := structuredOf(res); len(got) != 2 || !strings.HasPrefix(id, "run_") || got["state"] != "queued" &&
			got["state"] != "running" {
			t.Fatalf("got %v, want the ID and the state of the run", got)
		}
		<-runs.waiting
		if got := state(); got != "running" {
			t.Errorf("got state %v, want running", got)
		}
		for _, want := range []bool{true, false} {
			res := callTool(t, session, "cancel_run", map[string]any{"run_id": id})
			if got := structuredOf(res)["cancelled"]; got != want {
				t.Errorf("got cancelled %v, want %v", got, want)
			}
			waitFor(t, runs, id)
		}
		if res := callTool(t, session, "get_run", map[string]any{"run_id": id}); !res.IsError ||
			!strings.Contains(textOf(res), "could not be started: the run was cancelled") {
			t.Errorf("got %q, want it to say what became of the run", textOf(res))
		}
	})
}

// get_run shows the output of a run in progress, and that a queued run has no sandbox yet.
func TestARunThatGoesOnShowsItsOutput(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		for code, want := range map[string]map[string]any{
			"queue": {"state": "queued", "stdout": nil},
			"wait":  {"state": "running", "stdout": "printed <>&\n"},
		} {
			id := runIDOf(callTool(t, session, "run_code",
				map[string]any{"language": "node", "code": code, "background": true}))
			<-runs.waiting
			res := callTool(t, session, "get_run", map[string]any{"run_id": id})
			got := structuredOf(res)
			if got["state"] != want["state"] || got["stdout"] != want["stdout"] {
				t.Errorf("%s: got %v, want %v", code, got, want)
			}
			if text := textOf(res); !strings.Contains(text, "run_id: "+id) ||
				!strings.Contains(text, want["state"].(string)) {
				t.Errorf("%s: got %q, want the ID and the state", code, text)
			}
		}
	})
}

func TestPrintedOutputOfAFinishedRun(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	id := runIDOf(callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"}))
	res := callTool(t, session, "get_run", map[string]any{"run_id": id})
	got := structuredOf(res)
	if got["stdout"] != "printed <>&\n" || got["state"] != "done" || got["data"] != "x" || got["ok"] != true {
		t.Errorf("got %v, want what was printed and the result", got)
	}
	if want := "[100 bytes before]\nxxx"; !strings.HasPrefix(got["stderr"].(string), want) {
		t.Errorf("got stderr %.60q, want it to start with %q", got["stderr"], want)
	}
	if res := callTool(t, session, "get_run", map[string]any{"run_id": "run_none"}); !strings.Contains(
		textOf(res), "no such run") {
		t.Errorf("got %q, want it to say that there is no such run", textOf(res))
	}
}

func structuredOf(res *mcp.CallToolResult) map[string]any {
	answer, _ := res.StructuredContent.(map[string]any)
	return answer
}

// waitFor waits until a run is done.
func waitFor(t testing.TB, runs *fakeRuns, id string) {
	t.Helper()
	run, ok := runs.Get(everyone, id)
	if !ok {
		t.Fatalf("there is no run %q", id)
	}
	<-run.Done()
}

func TestCancellingACallEndsItsRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-runs.waiting
			cancel()
		}()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
			Arguments: map[string]any{"language": "python", "code": "wait"}})
		if err == nil {
			t.Error("got a result, want the call cancelled")
		}
		<-runs.ended // blocks for ever when the run goes on
	})
}

func TestTheHostsEndEndsItsRuns(t *testing.T) {
	s, runs := newServer(t)
	in, toServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, io.Discard) }()
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(t, toServer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(t, toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code",`+
		`"arguments":{"language":"python","code":"wait"}}}`)
	<-runs.waiting
	toServer.Close()
	<-runs.ended
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

func TestOurOwnEndEndsRuns(t *testing.T) {
	s, runs := newServer(t)
	in, toServer := io.Pipe()
	defer toServer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, in, io.Discard) }()
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(t, toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code",`+
		`"arguments":{"language":"python","code":"wait"}}}`)
	<-runs.waiting
	cancel()
	<-runs.ended
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: got %v, want %v", err, context.Canceled)
	}
}

func TestSeconds(t *testing.T) {
	for n, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, 1e-30: 1, math.MaxFloat64: math.MaxInt64, 9223372036.9: math.MaxInt64,
		3600: time.Hour,
	} {
		if got := seconds(n); got != want {
			t.Errorf("seconds(%g): got %v, want %v", n, got, want)
		}
	}
}

// If the server is busy, the answer has the advice to try again.
func TestABusyServerSaysTryAgain(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "busy"})
		failure, _ := structuredOf(res)["error"].(map[string]any)
		if !res.IsError || failure["type"] != "RateLimit" || failure["retryable"] != true ||
			!strings.HasSuffix(textOf(res), "run_id: "+runIDOf(res)+"; retryable") {
			t.Errorf("got %s, want RateLimit, to be tried again", textOf(res))
		}
		id := runIDOf(callTool(t, session, "run_code",
			map[string]any{"language": "python", "code": "busy", "background": true}))
		waitFor(t, runs, id)
		if res := callTool(t, session, "get_run", map[string]any{"run_id": id}); !res.IsError ||
			!strings.HasSuffix(textOf(res), "hint: run it again when another run has ended") {
			t.Errorf("in the background: got %s, want the hint", textOf(res))
		}
	})
}

// A run in the background may be in any state when run_code answers: it may even be done.
func TestRunCodeAnswersEveryState(t *testing.T) {
	var tools []struct {
		Name         string
		OutputSchema struct {
			Properties struct{ State struct{ Enum []runs.State } }
		}
	}
	if err := strictjson.UnmarshalOpen(toolsJSON, &tools); err != nil {
		t.Fatal(err)
	}
	want := []runs.State{runs.Queued, runs.Running, runs.Done, statePending}
	for _, tool := range tools {
		if got := tool.OutputSchema.Properties.State.Enum; tool.Name == "run_code" && !slices.Equal(got, want) {
			t.Errorf("the schema has the states %q, want %q", got, want)
		}
	}
}
