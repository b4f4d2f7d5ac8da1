package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// connect starts servers and closes them when the test ends.
func connect(t testing.TB, opts *upstream.Options, configs ...upstream.Config) *upstream.Set {
	t.Helper()
	set, err := upstream.New(configs, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	set.Connect(t.Context())
	return set
}

// fake starts one fake server.
func fake(t testing.TB, mode string) (*upstream.Set, upstreamtest.Notes) {
	t.Helper()
	config, notes := upstreamtest.Fake(t, mode)
	return connect(t, nil, config), notes
}

// names returns the names of the only server's tools, in order.
func names(t testing.TB, set *upstream.Set) []string {
	t.Helper()
	servers := set.Servers()
	if len(servers) != 1 {
		t.Fatalf("got %d servers, want 1", len(servers))
	}
	var names []string
	for _, tool := range servers[0].Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// text returns the text of a result's first block.
func text(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		t.Fatalf("got result %s (%v), want one with text", raw, err)
	}
	return result.Content[0].Text
}

func TestDefinitionsArriveByteForByte(t *testing.T) {
	set, _ := fake(t, "good")
	s, err := catalog.NewSnapshot(set.Servers())
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := s.Tool("good", "echo")
	want := `{"name":"echo","title":"Echo","description":"Returns its arguments.","inputSchema":{"type":"object"},` +
		`"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"forbidden"},"x":1.0}`
	if !ok || string(tool.Raw) != want {
		t.Errorf("got %s, want %s", tool.Raw, want)
	}
}

func TestResultsArriveByteForByte(t *testing.T) {
	set, notes := fake(t, "good")
	got, err := set.Call(t.Context(), "good", "odd",
		json.RawMessage(`{"big": 12345678901234567890, "n":1.0, "deep":{"ä":"\u2028"}}`))
	want := `{"content":[{"type":"hologram","depth":1.50},null,7],"structuredContent":[1e400],"isError":"no",` +
		`"x":{"y":1.0},"_meta":5}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	sent := []string{`call odd {"big":12345678901234567890,"n":1.0,"deep":{"ä":"\u2028"}}`}
	if diff := cmp.Diff(sent, notes.Lines(t, "call")); diff != "" {
		t.Errorf("what the server got differs (-want +got):\n%s", diff)
	}
}

func TestToolErrorIsAResult(t *testing.T) {
	set, _ := fake(t, "good")
	got, err := set.Call(t.Context(), "good", "fail", nil)
	if err != nil || !strings.Contains(string(got), `"isError":true`) {
		t.Errorf("got %s, %v, want a result with isError", got, err)
	}
}

func TestFailedCalls(t *testing.T) {
	good, _ := fake(t, "good")
	tests := []struct {
		name, server, tool, arguments string
		kind                          upstream.ErrorType
		retryable                     bool
		message                       string
	}{
		{"no such server", "bad", "echo", `{}`, upstream.UnknownTool, false, "there is no such server"},
		{"no such tool", "good", "nothing", `{}`, upstream.ToolError, false,
			"the server refused the call: Unknown tool: nothing"},
		{"a crash in the call", "good", "crash", `{}`, upstream.TransientNetwork, false,
			"the connection to the server was lost"},
		{"a crash in an idempotent call", "good", "crash_again", `{}`, upstream.TransientNetwork, true,
			"the connection to the server was lost"},
		{"no result", "good", "no_result", `{}`, upstream.InvalidOutput, false,
			"the server answered with something other than a tool result"},
		{"input asked for", "good", "want_input", `{}`, upstream.ToolError, false,
			"the tool wants to ask a person first; Airlock lets this server ask no person (servers.<id>.elicitation)"},
		{"a result beyond the limit", "good", "big", `{"bytes":17000000}`, upstream.OutputLimit, false,
			"the result has more than the 16711680 bytes that one call may return; " +
				upstream.AskForLess},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := good.Call(t.Context(), test.server, test.tool, json.RawMessage(test.arguments))
			var failed *upstream.CallError
			if !errors.As(err, &failed) {
				t.Fatalf("got %.100s, %v, want a CallError", got, err)
			}
			if failed.Type != test.kind || failed.Retryable != test.retryable || failed.Message != test.message {
				t.Errorf("got %s (retryable %v): %s, want %s (retryable %v): %s",
					failed.Type, failed.Retryable, failed.Message, test.kind, test.retryable, test.message)
			}
			if _, err := good.Call(t.Context(), "good", "echo", nil); err != nil {
				t.Errorf("the next call: got %v, want none", err)
			}
		})
	}
}

func TestLargestResultFits(t *testing.T) {
	set, _ := fake(t, "good")
	got, err := set.Call(t.Context(), "good", "big", json.RawMessage(`{"bytes":16700000}`))
	if err != nil || len(text(t, got)) != 16700000 {
		t.Errorf("got %d bytes, %v, want 16700000 of text", len(got), err)
	}
}

func TestTimeout(t *testing.T) {
	for tool, retryable := range map[string]bool{"slow": false, "slow_read": true} {
		t.Run(tool, func(t *testing.T) {
			config, notes := upstreamtest.Fake(t, "good")
			config.CallTimeout = 300 * time.Millisecond
			set := connect(t, nil, config)
			_, err := set.Call(t.Context(), "good", tool, nil)
			var failed *upstream.CallError
			if !errors.As(err, &failed) || failed.Type != upstream.Timeout || failed.Retryable != retryable {
				t.Fatalf("got %+v, want a Timeout that is retryable: %v", err, retryable)
			}
			testenv.Await(t, "the cancellation at the server",
				func() bool { return len(notes.Lines(t, "cancelled")) == 1 })
		})
	}
}

func TestCancellationReachesTheServer(t *testing.T) {
	set, notes := fake(t, "good")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := set.Call(ctx, "good", "slow", nil)
		done <- err
	}()
	testenv.Await(t, "the call at the server", func() bool { return len(notes.Lines(t, "call slow")) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	testenv.Await(t, "the cancellation at the server", func() bool { return len(notes.Lines(t, "cancelled")) == 1 })
}

func TestCallsRunAtTheSameTime(t *testing.T) {
	set, notes := fake(t, "good")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() { set.Call(ctx, "good", "slow", nil) })
	}
	testenv.Await(t, "20 calls at the server", func() bool { return len(notes.Lines(t, "call slow")) == 20 })
	if _, err := set.Call(t.Context(), "good", "echo", nil); err != nil {
		t.Errorf("a call beside slow ones: %v", err)
	}
	cancel()
	running.Wait()
}

// The server may ask for nothing: no roots, no model, no person.
func TestRequestsOfTheServerAreDeclined(t *testing.T) {
	set, notes := fake(t, "good")
	tests := []struct{ method, want string }{
		{"sampling/createMessage", `"error":{"code":-32600,"message":"Airlock lets no server use`},
		{"elicitation/create", `"error":{"code":`},
		{"shell/run", `"error":{"code":-32601`},
		{"roots/list", `"error":{"code":-32600,"message":"Airlock tells no server`},
		{"ping", `"result":{}`},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			got, err := set.Call(t.Context(), "good", "ask",
				json.RawMessage(fmt.Sprintf(
					`{"method":%q,"params":{"messages":[],"maxTokens":1,"message":"x",`+
						`"requestedSchema":{"type":"object"}}}`, test.method)))
			if err != nil || !strings.Contains(string(got), test.want) {
				t.Errorf("got %s, %v, want %s in it", got, err, test.want)
			}
		})
	}
	if said := notes.Lines(t, "initialize"); len(said) != 1 || !strings.Contains(said[0], declaredAlways) {
		t.Errorf("got %q, want tasks and apps declared", said)
	}
}

func TestEnvironmentOfTheServer(t *testing.T) {
	t.Setenv("AIRLOCK_SECRET_KEY", "hunter22")
	t.Setenv("TZ", "Europe/Berlin")
	config, _ := upstreamtest.Fake(t, "good")
	config.Env = map[string]string{"TOKEN": "abc"}
	got, err := connect(t, nil, config).Call(t.Context(), "good", "environment", nil)
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(text(t, got), "\n")
	if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "AIRLOCK_") }) {
		t.Errorf("got %q, want nothing of Airlock's own", env)
	}
	for _, want := range []string{"TOKEN=abc", "TZ=Europe/Berlin", "PATH=" + os.Getenv("PATH")} {
		if !slices.Contains(env, want) {
			t.Errorf("got %q, want %s", env, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name    string
		configs []upstream.Config
		want    string
	}{
		{"no ID", []upstream.Config{{Command: "x"}}, "has no ID"},
		{"neither command nor URL", []upstream.Config{{ID: "a"}}, "neither a command nor a URL"},
		{"both", []upstream.Config{{ID: "a", Command: "x", URL: "http://x"}}, "both a command and a URL"},
		{"one ID twice", []upstream.Config{{ID: "a", Command: "x"}, {ID: "a", Command: "y"}},
			`two upstream servers have the ID "a"`},
		{"a file URL", []upstream.Config{{ID: "a", URL: "file:///etc/passwd"}}, "not http:// or https://"},
		{"a URL without host", []upstream.Config{{ID: "a", URL: "https:///x"}}, "not http:// or https://"},
		{"a header with a line feed",
			[]upstream.Config{{ID: "a", URL: "http://x", Headers: map[string]string{"X": "a\r\nY: b"}}},
			`the header "X"`},
		{"a header with a space", []upstream.Config{{ID: "a", URL: "http://x", Headers: map[string]string{"X Y": "a"}}},
			`the header "X Y"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := upstream.New(test.configs, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that contains %q", err, test.want)
			}
		})
	}
}

func TestConfigPrintsNoSecret(t *testing.T) {
	config := upstream.Config{ID: "a", URL: "https://user:hunter22@x.example/mcp?key=hunter22",
		Env: map[string]string{"K": "hunter22"}, Headers: map[string]string{"Authorization": "Bearer hunter22"},
		Args: []string{"--key=hunter22"}}
	asJSON, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprint(config), fmt.Sprintf("%+v", config), fmt.Sprintf("%#v", config),
		string(asJSON), config.LogValue().String()} {
		if strings.Contains(printed, "hunter22") {
			t.Errorf("got %s", printed)
		}
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// number reads the digits behind a prefix.
func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:])
	if err != nil {
		t.Fatalf("got %q, want a number in it", text)
	}
	return n
}
