package orchestrator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// guest plays the code of a run. It ends when the connection does.
type guest func(ctx context.Context, c *conn) error

// conn is a connection of a guest to the host.
type conn struct {
	io.Writer
	in     *bufio.Reader
	stdout io.Writer

	interrupted <-chan struct{} // receives when the host has interrupted the guest
}

// ask sends one request and reads the next answer into answer.
func (c *conn) ask(method, params string, answer any) error {
	if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
		return err
	}
	return c.next(answer)
}

// next reads the next answer.
func (c *conn) next(answer any) error {
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var frame struct{ Result json.RawMessage }
	if err := json.Unmarshal(line, &frame); err != nil {
		return err
	}
	return json.Unmarshal(frame.Result, answer)
}

// call makes one tool call.
func (c *conn) call(tool, arguments string) (broker.Answer, error) {
	var answer broker.Answer
	err := c.ask(methodCall, fmt.Sprintf(`{"server_id":"demo","name":%q,"arguments":%s}`, tool, arguments), &answer)
	return answer, err
}

// upstream is a server whose answers a test decides; nil answers "done".
type upstream func(ctx context.Context, name string) (json.RawMessage, error)

// Call answers a call.
func (u upstream) Call(ctx context.Context, _, name string, _ json.RawMessage) (json.RawMessage, error) {
	if u == nil {
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
	}
	return u(ctx, name)
}

type fixed struct{ snapshot *catalog.Snapshot }

// Snapshot returns the same definitions always.
func (f fixed) Snapshot(caller.Caller) *catalog.Snapshot { return f.snapshot }
func (f fixed) Shared() *catalog.Snapshot                { return f.snapshot }

// Await has nothing to wait for.
func (f fixed) Await(context.Context, ...string) error { return nil }

// lab is an orchestrator whose sandboxes are goroutines.
type lab struct {
	fake *runnertest.Fake
	*Orchestrator
	dir    string // of the audit log
	log    *audit.Log
	logged testenv.Output // by the host
}

func newLab(t *testing.T, servers upstream, limits admission.Limits, options Options, play guest) *lab {
	t.Helper()
	fake := &runnertest.Fake{Guest: func(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
		if !g.Ready() {
			return runner.Exit{Code: 1}
		}
		socket, err := g.Dial()
		if err != nil {
			return runner.Exit{Code: 2}
		}
		defer socket.Close()
		defer context.AfterFunc(ctx, func() { socket.Close() })()
		c := &conn{socket, bufio.NewReader(socket), g.Stdout, g.Interrupted}
		var code struct{ Language, Code string }
		if err := errors.Join(c.ask(methodStart, `{}`, &code), play(ctx, c)); err != nil && ctx.Err() == nil {
			fmt.Fprintln(g.Stderr, err)
			return runner.Exit{Code: 3}
		}
		return runner.Exit{}
	}}
	base, err := os.MkdirTemp("/tmp", "airlock-") // short, because a socket is created below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	l := &lab{dir: filepath.Join(base, "audit"), fake: fake}
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &l.logged), nil))
	sandboxes, err := runner.New(fake, &runner.Options{Logger: logger, StateDir: filepath.Join(base, "s"), Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	if l.log, err = audit.Open(l.dir, nil); err != nil {
		t.Fatal(err)
	}
	engine, err := policies.Load(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	redactor := redact.New()
	acts, err := admission.New(admission.Options{Log: l.log, Rules: admission.Rules{Policies: engine, Limits: limits,
		Operator: policies.Operator{"demo": {Allow: []string{policies.AllTools}, Deny: []string{"forbidden"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	calls, err := broker.New(servers, l.log, acts, &broker.Options{Redactor: redactor, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	if options.Limits.Timeout == 0 {
		options.Limits = runner.DefaultLimits()
		options.Limits.Timeout = 10 * time.Minute // a run ends by what the test does
	}
	l.Orchestrator, err = New(Parts{
		Runner: sandboxes, Broker: calls, Audit: l.log, Redactor: redactor, Logger: logger,
		Images: map[string]runner.Image{"python": {Name: "python", Digest: "sha256:1"},
			"node": {Name: "node", Digest: "sha256:3"}},
		Script:   &runner.Image{Name: "verify", Digest: "sha256:2"},
		Wrappers: NewWrappers(filepath.Join(base, "wrappers"), logger), Snapshots: fixed{snapshot(t)},
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		if err := errors.Join(sandboxes.Close(context.WithoutCancel(t.Context())), l.log.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func snapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	var definitions []json.RawMessage
	for _, name := range []string{"echo", "forbidden"} {
		definitions = append(definitions, fmt.Appendf(
			nil, `{"name":%q,"description":"For tests.","inputSchema":{"type":"object"}}`, name))
	}
	tools, warnings := catalog.ParseTools("demo", definitions)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	s, err := catalog.NewSnapshot([]catalog.Server{{ID: "demo", Tools: tools}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run makes one run and returns what it printed.
func (l *lab) run(t *testing.T, req Request) *Outcome {
	t.Helper()
	req.Language, req.Code = "python", []byte("play")
	outcome, err := l.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// records returns the audit log, oldest first.
func (l *lab) records(t *testing.T) []audit.Record {
	t.Helper()
	var all []audit.Record
	if err := audit.Tail(t.Context(), l.dir, 100_000, false,
		func(r audit.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}
