package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// talker is a server whose tools send much, wait, or ask and withdraw the question.
type talker struct {
	began, cancelled chan struct{} // of the tool "hang"
	asked            chan struct{} // closed by the host when it shows the question of the tool "withdraw"
}

func newTalker(t *testing.T) (*talker, string) {
	t.Helper()
	k := &talker{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})}
	server := mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, nil)
	add := func(name string, do func(ctx context.Context, req *mcp.CallToolRequest) error) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"},
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if err := do(ctx, req); err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " is done"}}}, nil
			})
	}
	add("hang", func(ctx context.Context, _ *mcp.CallToolRequest) error {
		k.began <- struct{}{}
		<-ctx.Done()
		k.cancelled <- struct{}{}
		return ctx.Err()
	})
	add("flood", flood)
	add("withdraw", func(ctx context.Context, req *mcp.CallToolRequest) error {
		asking, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-k.asked:
			case <-ctx.Done():
			}
			cancel()
		}()
		_, err := req.Session.Elicit(asking, &mcp.ElicitParams{Message: "Which?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"which": map[string]any{"type": "string"}}}})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the question was not withdrawn: %w", err)
		}
		return nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return k, web.URL
}

// flood sends 3,000 log messages and as much progress; every hundredth is larger than a host gets.
func flood(ctx context.Context, req *mcp.CallToolRequest) error {
	for i := range 3000 {
		text := fmt.Sprintf("message %d", i)
		if i%100 == 0 {
			text = strings.Repeat("x", 64<<10)
		}
		//lint:ignore SA1019 hosts of this revision want it
		err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Logger: "talker", Data: text})
		if token := req.Params.GetProgressToken(); err == nil && token != nil {
			err = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token,
				Progress: float64(i + 1), Message: text})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hears connects a host of revision 2025-11-25 to airlock mcp, in front of the talker.
func hears(t *testing.T, url string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	testenv.OwnHome(t, "python")
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	text := fmt.Sprintf("face: {callTool: true}\nmcpServers: {talker: {url: %q}}\n"+
		"servers: {talker: {trustAnnotations: true, elicitation: true}}\n", url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), "mcp", "--config", file)
	said := &testenv.Output{}
	command.Stderr = said
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, options).Connect(t.Context(),
		&mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// calling returns the two ways in which a host has a tool of the talker called.
func calling(tool string) map[string]*mcp.CallToolParams {
	return map[string]*mcp.CallToolParams{
		"a call": {Name: "call_tool", Arguments: map[string]any{"serverId": "talker", "toolName": tool,
			"arguments": map[string]any{}}},
		"a program": {Name: "run_code", Arguments: map[string]any{"language": "python",
			"code": "from servers import talker\nresult = (await talker." + tool + "({})).data"}},
	}
}

// Issue 31, item 5: if a host cancels its request, the server's call is cancelled, also one of a program.
func TestCancellationReachesServers(t *testing.T) {
	testenv.Sandbox(t)
	k, url := newTalker(t)
	host := hears(t, url, nil)
	for name, params := range calling("hang") {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := host.CallTool(ctx, params)
				ended <- err
			}()
			testenv.Receive(t, "the call at the server", k.began)
			cancel()
			testenv.Receive(t, "the cancellation at the server", k.cancelled)
			if err := <-ended; err == nil {
				t.Error("the cancelled request has an answer")
			}
		})
	}
}

// Issue 31, item 5: a question that a server withdraws is closed at the host.
func TestWithdrawnQuestionsAreClosed(t *testing.T) {
	k, url := newTalker(t)
	closed := make(chan struct{}, 1)
	host := hears(t, url, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(k.asked)
			<-ctx.Done()
			closed <- struct{}{}
			return nil, ctx.Err()
		}})
	result, err := host.CallTool(t.Context(), calling("withdraw")["a call"])
	if err != nil || result.IsError {
		t.Fatalf("got %s, %v", textOf(result), err)
	}
	testenv.Receive(t, "the end of the question at the host", closed)
}

// Issue 31, item 5: a host gets at most 1,000 notices of a run, and none that is too large, while the call goes on.
func TestFloodsOfNoticesAreBounded(t *testing.T) {
	testenv.Sandbox(t)
	_, url := newTalker(t)
	var messages, largest, progress atomic.Int64
	host := hears(t, url, &mcp.ClientOptions{
		//lint:ignore SA1019 hosts of this revision want it
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			if r.Params.Logger != "talker/talker" {
				return
			}
			messages.Add(1)
			largest.Store(max(largest.Load(), int64(len(fmt.Sprint(r.Params.Data)))))
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress.Add(1)
			largest.Store(max(largest.Load(), int64(len(r.Params.Message))))
		},
	})
	//lint:ignore SA1019 hosts of this revision set it
	if err := host.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	for name, params := range calling("flood") {
		t.Run(name, func(t *testing.T) {
			messages.Store(0)
			progress.Store(0)
			params.SetProgressToken("p-" + name)
			result, err := host.CallTool(t.Context(), params)
			if err != nil || result.IsError || !strings.Contains(textOf(result), "flood is done") {
				t.Fatalf("got %s, %v", textOf(result), err)
			}
			if n := messages.Load(); n == 0 || n > 1000 {
				t.Errorf("got %d log messages, want some and at most 1,000", n)
			}
			if n := progress.Load(); n > 1000 {
				t.Errorf("got progress %d times, want at most 1,000", n)
			}
			if n := largest.Load(); n > 16<<10 {
				t.Errorf("got a notice of %d bytes, want at most 16 KiB", n)
			}
		})
	}
}
