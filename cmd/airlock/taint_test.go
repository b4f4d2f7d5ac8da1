package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// reader is a server with one tool, which answers, or holds the call for as long as held is open.
func reader(t *testing.T, held <-chan struct{}, arrived chan<- struct{}) (url string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "reader", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if held != nil {
				arrived <- struct{}{}
				select {
				case <-held:
				case <-ctx.Done():
				}
			}
			return nil, map[string]any{}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// daemonStatus is what `airlock status --json` prints.
type daemonStatus struct {
	PID int
	URL string
}

func statusHere(t *testing.T) (s daemonStatus) {
	t.Helper()
	text, stderr, _ := airlock(t, "status", "--json")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s, %s", err, text, stderr)
	}
	return s
}

// kill ends the daemon as a crash does.
func kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(statusHere(t).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// stdio connects with a command that the test, or a program that the command starts, is the host of.
func stdio(t *testing.T, command string, args ...string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(command, args...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // it may have ended
	return session
}

// overHTTP connects with a token, in a new session or in the revision without sessions.
func overHTTP(t *testing.T, token, revision string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: statusHere(t).URL + "/mcp",
		HTTPClient: testenv.Bearer(token)}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // its daemon may have ended
	return session
}

// calls makes a call without code and checks whether the policies permit it.
func calls(t *testing.T, what string, session *mcp.ClientSession, server string, want bool) {
	t.Helper()
	get := &mcp.CallToolParams{Name: "call_tool",
		Arguments: map[string]any{"serverId": server, "name": "get", "arguments": map[string]any{}}}
	res, err := session.CallTool(t.Context(), get)
	if err != nil && strings.Contains(err.Error(), "send it again") { // its daemon has ended
		res, err = session.CallTool(t.Context(), get)
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	text := fmt.Sprint(res.StructuredContent)
	for _, content := range res.Content {
		text += content.(*mcp.TextContent).Text
	}
	denied := strings.Contains(text, "team.no-leak")
	if !want && !denied || want && res.IsError {
		t.Errorf("%s: got %s, want permitted: %t", what, text, want)
	}
}

// A conversation that has read the customers may not post. A restart of the daemon, a new connection,
// a launcher, a new session and the revision without sessions do not change that, also after kill -9
// and during the read (issue 23). Another host and another token of the same user may post.
func TestWhatAConversationHasReadOutlivesTheDaemon(t *testing.T) {
	held, arrived := make(chan struct{}), make(chan struct{}, 1)
	crm, slow, web := reader(t, nil, nil), reader(t, held, arrived), reader(t, nil, nil)
	t.Cleanup(func() { close(held) })
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	t.Setenv("AIRLOCK_CONFIG", "airlock.yaml") // which needs no confirmation
	write(t, "rules.cedar", `permit (principal, action, resource);
@id("team.no-leak") forbid (principal, action, resource in Server::"web")
when { context.session.servers.contains("crm") || context.session.servers.contains("slow") };
`)
	write(t, "airlock.yaml", fmt.Sprintf(`
mcpServers: {crm: {url: %q}, slow: {url: %q}, web: {url: %q}}
servers: {crm: {trustAnnotations: true}, slow: {trustAnnotations: true}, web: {trustAnnotations: true}}
face: {callTool: true}
policies: [rules.cedar]
`, crm, slow, web))
	again := func() { beginDaemon(t) } // its end is that of the whole test
	again()
	t.Run("on stdio", func(t *testing.T) {
		connect := func() *mcp.ClientSession { return stdio(t, ownProgram(), "mcp") }
		launched := func() *mcp.ClientSession { return stdio(t, "sh", "-c", ownProgram()+" mcp; :") }
		another := func() *mcp.ClientSession { return stdio(t, "sh", "-c", "cat | "+ownProgram()+" mcp") }
		first := connect()
		calls(t, "before the read", first, "web", true)
		calls(t, "the read", first, "crm", true)
		calls(t, "in the same connection", first, "web", false)
		calls(t, "in a new connection", connect(), "web", false)
		calls(t, "with a launcher", launched(), "web", false)
		calls(t, "another host", another(), "web", true)
		kill(t)
		calls(t, "the same connection after kill -9", first, "web", false)
		calls(t, "without a daemon", connect(), "web", false)
		calls(t, "another host without a daemon", another(), "web", true)
		again()
		calls(t, "with the next daemon", launched(), "web", false)
	})
	t.Run("over HTTP", func(t *testing.T) {
		token, stderr, code := airlock(t, "tokens", "create", "one")
		another, _, _ := airlock(t, "tokens", "create", "another")
		if code != 0 {
			t.Fatal(stderr)
		}
		token, another = strings.TrimSpace(token), strings.TrimSpace(another)
		first := overHTTP(t, token, "2025-11-25")
		calls(t, "before the read", first, "web", true)
		reading := make(chan error, 1)
		go func() {
			_, err := first.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool",
				Arguments: map[string]any{"serverId": "slow", "name": "get", "arguments": map[string]any{}}})
			reading <- err
		}()
		testenv.Receive(t, "the read of the page", arrived)
		calls(t, "a new session during the read", overHTTP(t, token, "2025-11-25"), "web", false)
		kill(t)
		if err := testenv.Receive(t, "the end of the reading call", reading); err == nil {
			t.Error("a read that was cut off was answered")
		}
		again()
		calls(t, "a new session after kill -9", overHTTP(t, token, "2025-11-25"), "web", false)
		calls(t, "without a session", overHTTP(t, token, "2026-07-28"), "web", false)
		calls(t, "another token", overHTTP(t, another, "2025-11-25"), "web", true)
		if _, stderr, code := airlock(t, "stop"); code != 0 {
			t.Fatal(stderr)
		}
		again()
		calls(t, "after an orderly restart", overHTTP(t, token, "2025-06-18"), "web", false)
	})
}
