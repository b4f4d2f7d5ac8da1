package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
)

func TestFailedRunIsAnError(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "fail"})
	if !res.IsError || !strings.Contains(textOf(res), `"type":"ValueError"`) || res.StructuredContent == nil {
		t.Errorf("got %s (isError %v), want the envelope as an error", textOf(res), res.IsError)
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

func TestLongTextIsCutAndSaysSo(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "large"})
	text := textOf(res)
	if len(text) > maxText || !strings.ContainsRune(text, 'ä') || strings.ContainsRune(text, '\uFFFD') ||
		!strings.Contains(text, "[cut here: the answer has 50") || !strings.HasSuffix(text, "inside the program.]") {
		t.Errorf("got %d bytes ending in %q, want at most %d and a note about the cut", len(text), text[max(0, len(text)-200):], maxText)
	}
	data := res.StructuredContent.(map[string]any)["result"].(map[string]any)["data"].(string)
	if len(data) != 50_000 {
		t.Errorf("got %d bytes of data, want all 50000", len(data))
	}
}

func TestBackgroundRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		state := func() any {
			res := callTool(t, session, "get_run", map[string]any{"run_id": "run_background"})
			return res.StructuredContent.(map[string]any)["state"]
		}
		if got := state(); got != "unknown" {
			t.Fatalf("got state %v before the start, want unknown", got)
		}
		res := callTool(t, session, "run_code", map[string]any{"language": "node", "code": "wait", "background": true})
		if diff := cmp.Diff(map[string]any{"run_id": "run_background", "state": "running"}, res.StructuredContent); diff != "" {
			t.Fatalf("run_code differs (-want +got):\n%s", diff)
		}
		if got := state(); got != "running" {
			t.Errorf("got state %v, want running", got)
		}
		runs.finish("run_background")
		if got := state(); got != "done" {
			t.Errorf("got state %v, want done", got)
		}
		res = callTool(t, session, "cancel_run", map[string]any{"run_id": "run_background"})
		if got := res.StructuredContent.(map[string]any)["cancelled"]; got != false {
			t.Errorf("cancelling a finished run: got %v, want false", got)
		}
	})
}

func TestCancelRun(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	callTool(t, session, "run_code", map[string]any{"language": "node", "code": "wait", "background": true})
	for _, want := range []bool{true, false} {
		res := callTool(t, session, "cancel_run", map[string]any{"run_id": "run_background"})
		if got := res.StructuredContent.(map[string]any)["cancelled"]; got != want {
			t.Errorf("got cancelled %v, want %v", got, want)
		}
	}
}

func TestPrintedOutputOfAFinishedRun(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"})
	res := callTool(t, session, "get_run", map[string]any{"run_id": "run_done"})
	got := res.StructuredContent.(map[string]any)
	if got["stdout"] != "printed <>&\n" || got["state"] != "done" {
		t.Errorf("got %v and state %v, want what was printed", got["stdout"], got["state"])
	}
	if want := "[100 bytes before this are left out]\nxxx"; !strings.HasPrefix(got["stderr"].(string), want) {
		t.Errorf("got stderr %.60q, want it to start with %q", got["stderr"], want)
	}

	other := connect(t, s, "2025-11-25", nil)
	if res := callTool(t, other, "get_run", map[string]any{"run_id": "run_none"}); !strings.Contains(textOf(res), "no such run") {
		t.Errorf("got %q, want it to say that there is no such run", textOf(res))
	}
}

func TestCancellingACallEndsItsRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-runs.waiting
			cancel()
		}()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": "wait"}})
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
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(t, toServer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(t, toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"wait"}}}`)
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
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(t, toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"wait"}}}`)
	<-runs.waiting
	cancel()
	<-runs.ended
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: got %v, want %v", err, context.Canceled)
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	var r recent
	for i := range maxRecent + 1 {
		o := outcomeOf(fmt.Sprintf("run_%d", i), orchestrator.Result{OK: true})
		r.add("ses_a", o)
	}
	if r.get("ses_a", "run_0") != nil || r.get("ses_a", "run_1") == nil || r.get("ses_b", "run_1") != nil {
		t.Error("want the oldest forgotten, the others kept, and each only for its session")
	}
	large := outcomeOf("run_large", orchestrator.Result{OK: true})
	large.Stdout = strings.Repeat("x", maxRecentBytes)
	r.add("ses_a", large)
	if len(r.kept) != 1 || r.bytes != r.kept[0].size() {
		t.Errorf("got %d kept with %d bytes, want only the newest", len(r.kept), r.bytes)
	}
}

func TestSeconds(t *testing.T) {
	for n, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, 1e-30: 1, math.MaxFloat64: math.MaxInt64, 9223372036.9: math.MaxInt64, 3600: time.Hour,
	} {
		if got := seconds(n); got != want {
			t.Errorf("seconds(%g): got %v, want %v", n, got, want)
		}
	}
}
