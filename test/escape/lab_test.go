package escape_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ctrd"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// closeTimeout bounds the removal of everything at the end of an attack.
const closeTimeout = 30 * time.Second

// lab is what all attacks on one driver share.
type lab struct {
	driver runner.Driver
	images map[string]runner.Image
	logger *slog.Logger
	shared *sandboxes // one runner for all systems, with a pool; nil: each has its own, without
}

// sandboxes is a runner and what it has started.
type sandboxes struct {
	runner  *runner.Runner
	dir     string
	started *recorder
}

// drivers names every driver that the attacks run on, and how to get it.
func drivers() map[string]func(*testing.T, testenv.Env) runner.Driver {
	return map[string]func(*testing.T, testenv.Env) runner.Driver{
		runsc.Name: func(t *testing.T, env testenv.Env) runner.Driver {
			driver, err := runsc.New(&runsc.Options{Path: env.Runsc,
				Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			return driver
		},
		ctrd.Name: func(t *testing.T, env testenv.Env) runner.Driver {
			daemon := ctrdtest.Run(t)
			driver, err := ctrd.New(t.Context(), &ctrd.Options{
				Address: daemon.Address, Shim: ctrdtest.Built(testenv.RepoRoot(t)).Shim,
				Runsc: env.Runsc, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := driver.Close(); err != nil {
					t.Error(err)
				}
			})
			return driver
		},
	}
}

func openLab(t *testing.T, env testenv.Env, driver runner.Driver) *lab {
	t.Helper()
	l := &lab{driver: driver, images: map[string]runner.Image{},
		logger: slog.New(alarm{slog.NewTextHandler(t.Output(), nil), t})}
	for _, definition := range images.Languages() {
		image, err := images.Open(env.Home, definition.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { image.Close() })
		l.images[image.Name] = runner.Image{
			Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args,
			Env: image.Env,
		}
	}
	return l
}

// alarm fails the test if Airlock logs an error: an attack must never require a person to
// act.
type alarm struct {
	slog.Handler
	t *testing.T
}

// Handle passes the record on.
func (a alarm) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError {
		a.t.Errorf("an error was logged: %s", record.Message)
	}
	return a.Handler.Handle(ctx, record)
}

// limits are small, so that bombs are over soon.
func limits() runner.Limits {
	l := runner.DefaultLimits()
	l.Memory, l.Disk, l.Inodes = 320<<20, 32<<20, 2000
	l.PIDs, l.OpenFiles = 32, 256
	l.Output = 2 << 20
	l.Timeout = 10 * time.Minute // each attack names its own
	return l
}

// openSandboxes returns a runner with a separate directory and the given pool size; -1
// means no pool.
func (l *lab) openSandboxes(pool int) (_ *sandboxes, err error) {
	dir, err := os.MkdirTemp("/tmp", "airlock-") // short, because a socket is created below it
	if err != nil {
		return nil, err
	}
	s := &sandboxes{dir: dir, started: &recorder{Driver: l.driver}}
	if err := os.Chmod(dir, 0o755); err != nil { // sandboxes read the wrappers
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.runner, err = runner.New(s.started, &runner.Options{Logger: l.logger, StateDir: s.state(), Pool: pool})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// state is the directory that the sandboxes live in.
func (s *sandboxes) state() string { return filepath.Join(s.dir, "s") }

// close ends all sandboxes and returns what is left of them.
func (s *sandboxes) close() (left []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err = s.runner.Close(ctx)
	left, leftErr := leftovers(s.started.specs(), s.state())
	return left, errors.Join(err, leftErr, os.RemoveAll(s.dir))
}

// system is a separate Airlock, from the orchestrator downwards.
type system struct {
	*sandboxes
	orders *orchestrator.Orchestrator
	undo   cleanup.Stack
}

// open puts a system together whose tools are called through upstream.
func (l *lab) open(t *testing.T, upstream broker.Upstream) *system {
	t.Helper()
	s := &system{sandboxes: l.shared}
	if s.sandboxes == nil {
		var err error
		if s.sandboxes, err = l.openSandboxes(-1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.assemble(t.TempDir(), l, upstream); err != nil {
		t.Fatal(errors.Join(err, s.undo.Run()))
	}
	return s
}

// assemble makes everything above the sandboxes, with its records in dir.
func (s *system) assemble(dir string, l *lab, upstream broker.Upstream) error {
	log, err := audit.Open(filepath.Join(dir, "audit"), &audit.Options{Keys: filepath.Join(dir, "keys")})
	if err != nil {
		return err
	}
	s.undo.Add(log.Close)
	snapshot, err := tools()
	if err != nil {
		return err
	}
	engine, err := policies.Load(policies.Default())
	if err != nil {
		return err
	}
	redactor := redact.New()
	acts, err := admission.New(admission.Options{Log: log, Rules: admission.Rules{Policies: engine,
		Operator: policies.Operator{server: {Allow: []string{policies.AllTools}, Deny: []string{forbidden}}}}})
	if err != nil {
		return err
	}
	calls, err := broker.New(upstream, log, acts, &broker.Options{Redactor: redactor, Logger: l.logger})
	if err != nil {
		return err
	}
	s.orders, err = orchestrator.New(orchestrator.Parts{
		Runner: s.runner, Broker: calls, Audit: log, Redactor: redactor, Images: l.images,
		Wrappers:  orchestrator.NewWrappers(filepath.Join(s.dir, "wrappers"), l.logger),
		Snapshots: fixed{snapshot}, Logger: l.logger,
	}, orchestrator.Options{Limits: limits(), Version: "test"})
	return err
}

// close ends all runs, and the sandboxes if the system owns them. It returns their
// leftovers.
func (s *system) close(l *lab) (left []string, err error) {
	s.orders.Close()
	err = s.undo.Run()
	if s.sandboxes != l.shared {
		var closeErr error
		left, closeErr = s.sandboxes.close()
		err = errors.Join(err, closeErr)
	}
	return left, err
}

// recorder remembers which sandboxes were started.
type recorder struct {
	runner.Driver

	mu    sync.Mutex
	noted []runner.Spec
}

// Start notes the sandbox and starts it.
func (r *recorder) Start(ctx context.Context, spec runner.Spec) (runner.Process, error) {
	r.mu.Lock()
	r.noted = append(r.noted, spec)
	r.mu.Unlock()
	return r.Driver.Start(ctx, spec)
}

func (r *recorder) specs() []runner.Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.noted)
}

// The tools that code inside finds: on one server, one of them out of bounds.
const (
	server    = "demo"
	echo      = "echo"      // returns its arguments
	big       = "big"       // returns a text of eight million bytes
	beat      = "beat"      // blocks until the neighbour is asked to work; see neighbour
	forbidden = "forbidden" // is denied by policy
)

func tools() (*catalog.Snapshot, error) {
	var definitions []json.RawMessage
	for _, name := range []string{echo, big, beat, forbidden} {
		definition, err := json.Marshal(map[string]any{"name": name, "description": "For attacks.",
			"inputSchema": map[string]string{"type": "object"}})
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, definition)
	}
	parsed, warnings := catalog.ParseTools(server, definitions)
	if len(warnings) > 0 {
		return nil, errors.New(strings.Join(warnings, "; "))
	}
	return catalog.NewSnapshot([]catalog.Server{{ID: server, Tools: parsed}})
}

type fixed struct{ snapshot *catalog.Snapshot }

// Snapshot returns the same definitions always.
func (f fixed) Snapshot(caller.Caller) *catalog.Snapshot { return f.snapshot }
func (f fixed) Shared() *catalog.Snapshot                { return f.snapshot }

// Await has nothing to wait for.
func (f fixed) Await(context.Context, ...string) error { return nil }

// upstream answers calls and keeps what was sent: arguments leave the sandbox.
type upstream struct {
	mu    sync.Mutex
	calls []call
}

type call struct{ name, arguments string }

// Call notes the call and answers it.
func (u *upstream) Call(_ context.Context, _, name string, arguments json.RawMessage) (json.RawMessage, error) {
	u.mu.Lock()
	u.calls = append(u.calls, call{name, string(arguments)})
	u.mu.Unlock()
	if name == big {
		return textResult(strings.Repeat("x", 8_000_000))
	}
	return textResult(string(arguments))
}

func (u *upstream) received() []call {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.calls)
}

func textResult(text string) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}})
}
