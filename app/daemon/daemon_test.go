package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// served is a daemon with real sandboxes.
type served struct {
	t        *testing.T
	url      string
	daemon   *Daemon
	listener *Listener
	stop     func()     // begins its orderly end
	ended    chan error // gets what Serve returned
}

// serve starts a daemon with its own configuration on a free port. change may modify the
// daemon before it serves.
func serve(t *testing.T, keys string, change ...func(*Daemon)) *served {
	t.Helper()
	return serveLogged(t, t.Output(), keys, change...)
}

// serveLogged is serve with a writer for the log of the daemon.
func serveLogged(t *testing.T, log io.Writer, keys string, change ...func(*Daemon)) *served {
	t.Helper()
	testenv.OwnHome(t)
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	if err := os.WriteFile(file, []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func() (*config.Config, error) {
		c, err := config.Load(file, os.LookupEnv)
		if err == nil {
			c.Serve.Listen, c.Sandbox.Pool = "127.0.0.1:0", 0 // few of the tests run programs
		}
		return c, err
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	opened, err := system.Open(t.Context(), c, system.Options{Version: "test", Serving: true,
		Tools: upstreams.CachedThenServers, Logger: logger, Reread: load})
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(t.Context(), Options{Config: c, System: opened, Version: "test",
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range change {
		change(d)
	}
	listener, err := Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &served{t: t, url: listener.URL(), daemon: d, listener: listener, stop: stop, ended: make(chan error, 1)}
	go func() { s.ended <- d.Serve(ctx, listener) }()
	go opened.Watch(ctx)
	t.Cleanup(func() {
		stop()
		if err := <-s.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		s.ended <- nil
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// token creates a token of a principal.
func (s *served) token(principal string, scopes ...string) string {
	s.t.Helper()
	_, value, err := s.daemon.known.Tokens().Create(
		s.t.Context(), auth.Grant{Name: "test", Principal: principal, Scopes: scopes})
	if err != nil {
		s.t.Fatal(err)
	}
	return value.Reveal()
}

// connect returns a session of a host with a token, in a revision of the protocol.
func (s *served) connect(token, revision string) *mcp.ClientSession {
	s.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(s.t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp",
		HTTPClient: testenv.Bearer(token)},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// run runs a program and returns the structured content and the text of the answer.
func (s *served) run(session *mcp.ClientSession, args map[string]any) (answer map[string]any, text string) {
	s.t.Helper()
	res, err := session.CallTool(s.t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: args})
	if err != nil {
		s.t.Error(err)
		return nil, ""
	}
	answer, _ = res.StructuredContent.(map[string]any)
	for _, content := range res.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			text += block.Text + "\n"
		}
	}
	return answer, text
}

// get requests a path and returns the status and the body of the answer.
func (s *served) get(path string) (int, string) {
	s.t.Helper()
	res, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// untilReady waits until the daemon is ready for runs.
func (s *served) untilReady() {
	s.t.Helper()
	testenv.Await(s.t, "the daemon is ready", func() bool {
		status, _ := s.get("/readyz")
		return status == http.StatusOK
	})
}

var revisions = []string{"2025-03-26", "2025-11-25", "2026-07-28"}

// One daemon answers hosts of both eras of the protocol.
func TestRunsOverHTTPInBothEras(t *testing.T) {
	s := serve(t, "")
	token := s.token("ann", auth.ScopeRun)
	if status, body := s.get("/healthz"); status != http.StatusOK || !strings.Contains(body, `"ok"`) {
		t.Errorf("healthz: %d %s", status, body)
	}
	s.untilReady()
	for _, revision := range revisions {
		session := s.connect(token, revision)
		answer, text := s.run(session, map[string]any{"language": "python", "code": "result = 6 * 7"})
		if answer["ok"] != true || fmt.Sprint(answer["data"]) != "42" {
			t.Errorf("%s: got %v, %s", revision, answer, text)
		}
	}
}

func TestOnlyTokensThatMayRunReachTheFace(t *testing.T) {
	s := serve(t, "")
	for _, test := range []struct {
		name, token, challenge string
		status                 int
	}{
		{"no token", "", "Bearer", http.StatusUnauthorized},
		{"a token that there is not", "airlock_0", `Bearer error="invalid_token"`, http.StatusUnauthorized},
		{"a token without the scope", s.token("ann", auth.ScopeAudit), `Bearer error="insufficient_scope", scope="run"`,
			http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+test.token)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != test.status || got != test.challenge {
			t.Errorf("%s: got %d, %q, want %d, %q", test.name, res.StatusCode, got, test.status, test.challenge)
		}
	}
}

// gate is a server with one tool, whose calls are answered together.
type gate struct {
	keys, code string        // of a configuration that has it, and a program that calls it
	arrived    chan struct{} // gets a value for each call
	open       func()        // answers all calls
}

func newGate(t *testing.T) *gate {
	t.Helper()
	arrived, opened := make(chan struct{}, 100), make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "gate", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "enter", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			arrived <- struct{}{}
			select {
			case <-opened:
			case <-ctx.Done():
			}
			return nil, map[string]any{}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	open := sync.OnceFunc(func() { close(opened) })
	t.Cleanup(func() {
		open()
		web.Close()
	})
	return &gate{
		keys: fmt.Sprintf(
			"mcpServers: {gate: {url: %q}}\nservers: {gate: {trustAnnotations: true}}\nsandbox: {timeout: 10m}\n",
			web.URL),
		code:    "from servers.gate import enter\nawait enter({})\nresult = 'done'",
		arrived: arrived,
		open:    open,
	}
}

// A run in progress at shutdown is answered. A new one is refused with an error that can be
// retried.
func TestRunsUnderWayEndWithAnAnswer(t *testing.T) {
	g := newGate(t)
	s := serve(t, g.keys)
	session := s.connect(s.token("ann", auth.ScopeRun), "2025-11-25")
	waiting := s.connect(s.token("bob", auth.ScopeRun), "2025-11-25")
	started, _ := s.run(waiting, map[string]any{"language": "python", "code": g.code, "background": true})
	id, _ := started["run_id"].(string)
	outcome := make(chan map[string]any, 1)
	go func() {
		answer, _ := s.run(session, map[string]any{"language": "python", "code": g.code})
		outcome <- answer
	}()
	for range 2 {
		<-g.arrived
	}
	s.stop()
	testenv.Await(t, "the daemon drains", s.daemon.draining.Load)
	if status, body := s.get("/readyz"); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "draining") {
		t.Errorf("readyz: got %d %s, want that it drains", status, body)
	}
	for { // until runs are refused: the flag comes a moment before
		_, text := s.run(waiting, map[string]any{"language": "python", "code": "result = 1"})
		if strings.Contains(text, "Airlock is ending") && strings.Contains(text, "hint: send it again") {
			break
		}
		if text == "" {
			t.Fatal("got no answer, want that no more runs are made")
		}
	}
	g.open()
	if answer := <-outcome; answer["data"] != "done" {
		t.Errorf("the run under way: got %v, want its result", answer)
	}
	res, err := waiting.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_run",
		Arguments: map[string]any{"run_id": id}})
	if err == nil {
		text, _ := json.Marshal(res.StructuredContent)
		if !strings.Contains(string(text), "done") && !strings.Contains(string(text), "running") {
			t.Errorf("the run in the background: got %s", text)
		}
	}
}

// The state of a daemon that was ready and cannot run code any more is not "starting". Only
// its operator sees the reason.
func TestADaemonThatCannotRecordIsUnavailable(t *testing.T) {
	log := &testenv.Output{}
	s := serveLogged(t, log, "")
	s.untilReady()
	dir := filepath.Join(os.Getenv("AIRLOCK_HOME"), "audit")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	status, body := s.get("/readyz")
	told := s.daemon.status(t.Context())
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"state":"unavailable"`) ||
		strings.Contains(body, dir) {
		t.Errorf("readyz: got %d %s", status, body)
	}
	if told.State != "unavailable" || !strings.Contains(told.Reason, "the audit log cannot be written") {
		t.Errorf("status: got %+v", told)
	}
	if !hasLine(log, "no run can be made", "the audit log cannot be written") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	s.untilReady()
}
