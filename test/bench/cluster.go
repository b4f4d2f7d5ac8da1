package main

import (
	"bufio"
	"bytes"
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
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// fleet is the nodes of one cluster, their PostgreSQL server, and a single node with SQLite.
type fleet struct {
	*bench
	address string // of the database
	key     string
	tokens  []string // each of another account
	tools   string   // what `-serve` needs
	web     *http.Client
}

// accounts is how many accounts it takes to have 10,000 sessions: each may have 1,000.
const accounts = 11

// measureCluster measures what a cluster costs and what it adds. PostgreSQL syncs each commit to the disk of the nodes'
// state.
func measureCluster(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	f, err := b.openFleet(ctx, &undo)
	if err != nil {
		return err
	}
	var errs []error // the others are measured nevertheless
	for _, measure := range []func(context.Context, *fleet) error{
		measureHops, measureThroughput, measureIdleSessions, measureDeadNodes, measureReplacement,
	} {
		if errs = append(errs, measure(ctx, f)); ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (b *bench) openFleet(ctx context.Context, undo *cleanup.Stack) (*fleet, error) {
	postgres, err := databasetest.Start()
	if err != nil {
		return nil, err
	}
	undo.Add(postgres.Close)
	targets, err := b.targets()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64 // more than there are callers: no request waits for a handshake
	undo.Add(func() error { transport.CloseIdleConnections(); return nil })
	f := &fleet{bench: b, address: postgres.Address, key: filepath.Join(b.home, "cluster.key"),
		tools: targets[0].args[1], web: &http.Client{Transport: transport}}
	if out, err := exec.CommandContext(ctx, b.bin("airlock"), "cluster", "key", f.key).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making the key of a cluster: %w: %s", err, out)
	}
	n, err := f.node("tokens", nil, undo)
	if err != nil {
		return nil, err
	}
	for i := range accounts {
		token, err := n.token(ctx, fmt.Sprint("caller-", i))
		if err != nil {
			return nil, err
		}
		f.tokens = append(f.tokens, token)
	}
	return f, nil
}

// serving is one `airlock serve`, a node of a cluster or a single one.
type serving struct {
	*fleet
	home, url string
	listen    string        // empty: a free port
	group     *cgroup.Group // nil: that of this process
	command   *exec.Cmd     // the last that was started
}

// single is a node without a cluster, with the settings of a node.
func (f *fleet) single(more map[string]any, undo *cleanup.Stack) (*serving, error) {
	config := inFrontOf([]target{{command: self(), args: []string{"-serve", f.tools}}})
	config["verify"] = map[string]any{"pool": 0}
	config["limits"] = map[string]any{"rate": "100000/5s", "toolRate": "100000/5s", "sessionCalls": 10_000_000}
	config["agents"] = map[string]any{"rate": "100000/m", "prices": map[string]any{"calculate": 0}}
	config["serve"] = map[string]any{"trustedProxies": []string{"127.0.0.1"}} // this process is no agent's host
	for key, value := range more {
		config[key] = value
	}
	home, err := stateDirectory(f.home, "node-", undo)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return &serving{fleet: f, home: home}, os.WriteFile(filepath.Join(home, "airlock.json"), text, 0o600)
}

// node is a node of the cluster that was not started.
func (f *fleet) node(name string, more map[string]any, undo *cleanup.Stack) (*serving, error) {
	config := map[string]any{"cluster": map[string]any{"database": map[string]any{"from": "env:AIRLOCK_DATABASE_URL"},
		"key": map[string]any{"from": "file:" + f.key}, "node": name, "advertise": "https://127.0.0.1:0"}}
	for key, value := range more {
		config[key] = value
	}
	return f.single(config, undo)
}

func self() string {
	path, _ := os.Executable() // it was found before, by bench.targets
	return path
}

func (s *serving) verb(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--config", filepath.Join(s.home, "airlock.json"))
	cmd := exec.CommandContext(ctx, s.bin("airlock"), args...)
	cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+s.home,
		"AIRLOCK_DATABASE_URL="+databasetest.With(s.address, "application_name", filepath.Base(s.home)))
	return cmd
}

// token makes a token of an account, before the node is started.
func (s *serving) token(ctx context.Context, account string) (string, error) {
	out, err := s.verb(ctx, "tokens", "create", "bench", "--for", account, "--scope", "run,agents").Output()
	if err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// start starts the node until undo, and waits until it is ready.
func (s *serving) start(ctx context.Context, undo *cleanup.Stack) error {
	listen := s.listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	s.command = s.verb(context.Background(), "serve", "--listen", listen)
	s.command.Stderr = os.Stderr
	out, err := s.command.StdoutPipe()
	if err != nil {
		return err
	}
	if s.group != nil {
		err = s.group.Start(s.command)
	} else {
		err = s.command.Start()
	}
	if err != nil {
		return err
	}
	started := s.command
	undo.Add(func() error { return end(started) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("a node does not serve: %w", err)
	}
	s.url = strings.TrimSpace(line)
	for {
		res, err := s.web.Get(s.url + "/readyz")
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
		if err := rest(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// end ends a node, which may have ended.
func end(started *exec.Cmd) error {
	if started.ProcessState != nil {
		return nil
	}
	if err := started.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return started.Wait()
}

// nodes starts nodes of some names.
func (f *fleet) nodes(ctx context.Context, more map[string]any, undo *cleanup.Stack, names ...string) ([]*serving,
	error) {
	var all []*serving
	for _, name := range names {
		n, err := f.node(name, more, undo)
		if err != nil {
			return nil, err
		}
		if err := n.start(ctx, undo); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// request sends JSON to a node and decodes the answer, unless it is an event stream.
func (s *serving) request(ctx context.Context, path string, headers map[string]string, body, answer any) (
	*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for key, value := range headers {
		r.Header.Set(key, value)
	}
	res, err := s.web.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(res.Body); err != nil || answer == nil {
		return res, err
	}
	return res, json.Unmarshal(raw.Bytes(), answer)
}

const bareRevision = "2025-11-25"

// session opens a session of MCP without a library, and returns the headers of its requests.
func (s *serving) session(ctx context.Context, token string) (map[string]string, error) {
	headers := map[string]string{"Authorization": "Bearer " + token}
	res, err := s.request(ctx, "/mcp", headers, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize",
		"params": map[string]any{"protocolVersion": bareRevision, "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "bench", "version": "1"}}}, nil)
	if err != nil {
		return nil, err
	}
	headers["Mcp-Session-Id"], headers["Mcp-Protocol-Version"] = res.Header.Get("Mcp-Session-Id"), bareRevision
	if headers["Mcp-Session-Id"] == "" {
		return nil, fmt.Errorf("opening a session: HTTP %d", res.StatusCode)
	}
	initialized := map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}
	_, err = s.request(ctx, "/mcp", headers, initialized, nil)
	return headers, err
}

// ping asks for the answer of a session, and returns the status.
func (s *serving) ping(ctx context.Context, session map[string]string) (int, error) {
	res, err := s.request(ctx, "/mcp", session, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}, nil)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}

// open connects a host over HTTP.
func (s *serving) open(ctx context.Context, token string, undo *cleanup.Stack) (*face, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp",
		HTTPClient: &http.Client{Transport: bearer{token, s.web.Transport}}},
		&mcp.ClientSessionOptions{ProtocolVersion: bareRevision})
	if err != nil {
		return nil, err
	}
	undo.Add(session.Close)
	return &face{session: session, process: s.command.Process}, nil
}

// bearer sends a token with each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}
