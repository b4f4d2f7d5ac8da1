package signin

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// serve starts airlock serve on a free port and returns its address.
func (a *airlock) serve(t *testing.T) string { return a.serveAt(t, "127.0.0.1:0") }

// serveAt starts airlock serve.
func (a *airlock) serveAt(t *testing.T, listen string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := a.command(ctx, "serve", "--listen", listen)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		command.Wait() // it was killed
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, a.said)
	}
	return strings.TrimSpace(line)
}

// token creates a token of a principal.
func (a *airlock) token(t *testing.T, principal string) string {
	t.Helper()
	token, err := a.command(t.Context(), "tokens", "create", "host", "--for", principal).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, a.said)
	}
	return strings.TrimSpace(string(token))
}

// caller is a host of a principal.
func (a *airlock) caller(t *testing.T, address, principal string) *mcp.ClientSession {
	t.Helper()
	if principal == "" { // the user who runs Airlock
		principal = setup.Principal()
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: address + "/mcp",
			HTTPClient: testenv.Bearer(a.token(t, principal))}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, a.said)
	}
	t.Cleanup(func() { session.Close() }) // a server that is gone needs no goodbye
	return session
}

// A sign-in is one person's: another caller of the daemon never calls with it.
func TestCallersDoNotShareASignIn(t *testing.T) {
	testenv.Sandbox(t)
	provider := startProvider(t)
	server := startNotes(t, provider)
	program := newAirlock(t, server)
	program.login(t, follows)
	address := program.serve(t)

	own, ann := program.caller(t, address, ""), program.caller(t, address, "ann")
	works(t, own)
	before := server.calls()
	got, raw := run(t, ann)
	if got.OK || got.Error.Retryable || !strings.Contains(got.Error.Message, "airlock login notes --for ann") {
		t.Errorf("ann, who has not signed in: got %s", raw)
	}
	if server.calls() != before {
		t.Error("a call of ann's went to the server with a token of another's")
	}

	program.login(t, follows, "--for", "ann")
	works(t, ann)
	anns := server.newest()
	works(t, own)
	if server.newest() == anns {
		t.Error("both call with one token")
	}
	if out, err := program.command(t.Context(), "logout", "notes", "--for", "ann").Output(); err != nil {
		t.Errorf("logout: %s, %v", out, err)
	}
	if got, raw := run(t, ann); got.OK || !strings.Contains(got.Error.Message, "--for ann") {
		t.Errorf("ann, signed out: got %s", raw)
	}
	works(t, own)
}
