package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/app/config"
	"github.com/airlock-mcp/airlock/internal/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// closeTimeout bounds the removal of everything at the end.
const closeTimeout = 30 * time.Second

// configFlag is the flag that all verbs with a configuration share.
type configFlag struct {
	Config string `placeholder:"FILE" help:"The configuration; by default ${env:AIRLOCK_CONFIG}, ./airlock.yaml, or the one in the user's configuration folder."`
}

// load reads the configuration and prints what is odd about it.
func (f configFlag) load(stderr io.Writer) (*config.Config, error) {
	path := f.Config
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("looking for a configuration: %w", err)
		}
		path = config.Find(dir, os.LookupEnv)
	}
	c, err := config.Load(path, os.LookupEnv)
	if err != nil {
		return nil, advise(err)
	}
	for _, finding := range config.Lint(c) {
		fmt.Fprintf(stderr, "airlock: %v\n", finding)
		if hint := finding.Hint(); hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", hint)
		}
	}
	return c, nil
}

// system is all parts of Airlock, put together.
type system struct {
	config       *config.Config
	logger       *slog.Logger
	upstreams    *upstream.Set
	orchestrator *orchestrator.Orchestrator
	snapshot     atomic.Pointer[catalog.Snapshot]
	undo         *cleanup.Stack
}

// open puts everything together that a run needs. The caller closes the system.
func open(ctx context.Context, flag configFlag, stderr io.Writer, jsonLogs bool) (_ *system, err error) {
	c, err := flag.load(stderr)
	if err != nil {
		return nil, err
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	s := &system{config: c, logger: newLogger(stderr, jsonLogs, slog.LevelWarn)}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()

	images, err := openImages(home, &undo)
	if err != nil {
		return nil, advise(err)
	}
	log, err := openAudit(c, home)
	if err != nil {
		return nil, advise(err)
	}
	undo.Add(log.Close)
	sandboxes, err := openRunner(c, home, s.logger)
	if err != nil {
		return nil, advise(err)
	}
	undo.Add(func() error { return closeRunner(ctx, sandboxes) })
	if err := s.connect(ctx, stderr, &undo); err != nil {
		return nil, err
	}
	redactor := redact.New()
	hold(redactor, c)
	calls, err := openBroker(c, s.upstreams, log, redactor, s.logger)
	if err != nil {
		return nil, advise(err)
	}
	s.orchestrator, err = orchestrator.New(orchestrator.Parts{
		Runner: sandboxes, Broker: calls, Audit: log, Redactor: redactor, Images: images,
		Wrappers: orchestrator.NewWrappers(store.Wrappers(home), s.logger), Snapshots: s, Logger: s.logger,
	}, orchestrator.Options{Limits: limits(c), Version: version})
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { s.orchestrator.Close(); return nil })
	s.undo = undo.Take()
	return s, nil
}

// Close ends all runs and removes everything. It returns when nothing is left.
func (s *system) Close() error { return s.undo.Run() }

// Snapshot returns the newest tool definitions.
func (s *system) Snapshot() *catalog.Snapshot { return s.snapshot.Load() }

func (s *system) serverIDs() []string {
	var ids []string
	for _, server := range s.config.Servers {
		ids = append(ids, server.ID)
	}
	return ids
}

// connect connects all servers and keeps the snapshot of their tools new.
// Servers that do not answer are missing from it, with the reason.
func (s *system) connect(ctx context.Context, stderr io.Writer, undo *cleanup.Stack) error {
	set, err := upstream.New(upstreamConfigs(s.config), &upstream.Options{
		// What goes wrong while they start is told below, once and in words.
		Logger: newLogger(stderr, false, slog.LevelError), Version: version, OnChange: func(string) { s.refresh(ctx) },
	})
	if err != nil {
		return fmt.Errorf("preparing the servers: %w", err)
	}
	undo.Add(set.Close)
	s.upstreams = set
	set.Connect(ctx)
	s.refresh(ctx)
	if s.snapshot.Load() == nil {
		return errors.New("the tools of the servers make no snapshot; the log says why")
	}
	s.tellMissing(stderr)
	return ctx.Err()
}

// tellMissing says which servers are missing and what can be done about it.
func (s *system) tellMissing(stderr io.Writer) {
	commands := map[string]string{}
	for _, server := range s.config.Servers {
		commands[server.ID] = server.Command
	}
	for _, server := range s.Snapshot().Servers() {
		if server.Problem == "" {
			continue
		}
		fmt.Fprintf(stderr, "airlock: the server %q is missing: %s\n", server.ID, server.Problem)
		if command := commands[server.ID]; command != "" {
			if _, err := exec.LookPath(command); err != nil {
				fmt.Fprintf(stderr, "hint: %s\n", installHint(command))
			}
		}
	}
}

// refresh makes a new snapshot of what the servers now offer. Where that fails
// the last good one stays.
func (s *system) refresh(ctx context.Context) {
	snapshot, err := catalog.NewSnapshot(s.upstreams.Servers())
	if err != nil {
		s.logger.ErrorContext(ctx, "the tools of the servers make no snapshot", slog.Any(telemetry.KeyError, err))
		return
	}
	s.snapshot.Store(snapshot)
}

// listTools connects the servers only to see their tools.
func listTools(ctx context.Context, flag configFlag, stderr io.Writer) (_ *catalog.Snapshot, err error) {
	c, err := flag.load(stderr)
	if err != nil {
		return nil, err
	}
	if len(c.Servers) == 0 {
		return nil, &usageError{"no server is configured", "write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	s := &system{config: c, logger: newLogger(stderr, false, slog.LevelWarn)}
	if err := s.connect(ctx, stderr, &undo); err != nil {
		return nil, err
	}
	return s.Snapshot(), nil
}

func newLogger(stderr io.Writer, asJSON bool, least slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(stderr, opts))
	}
	return slog.New(slog.NewTextHandler(stderr, opts))
}

// openImages opens every image; undo closes them.
func openImages(home string, undo *cleanup.Stack) (map[string]runner.Image, error) {
	opened := map[string]runner.Image{}
	for _, definition := range images.List() {
		image, err := images.Open(home, definition.Name)
		if err != nil {
			return nil, err
		}
		undo.Add(image.Close)
		opened[definition.Name] = runner.Image{
			Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Args: image.Args, Env: image.Env,
		}
	}
	return opened, nil
}

func openAudit(c *config.Config, home string) (*audit.Log, error) {
	return audit.Open(auditDir(c, home), &audit.Options{Keys: store.Keys(home)})
}

// auditDir is where the audit log lies.
func auditDir(c *config.Config, home string) string {
	if c.Audit.Path != "" {
		return c.Audit.Path
	}
	return store.Audit(home)
}

func openRunner(c *config.Config, home string, logger *slog.Logger) (*runner.Runner, error) {
	driver, err := newDriver(c, logger)
	if err != nil {
		return nil, err
	}
	waiting := c.Sandbox.Queue
	if waiting == 0 {
		waiting = -1 // the runner's word for none
	}
	return runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(home, os.Getenv), MaxSandboxes: c.Sandbox.MaxSandboxes, MaxWaiting: waiting,
	})
}

func closeRunner(ctx context.Context, sandboxes *runner.Runner) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return sandboxes.Close(ctx)
}

// limits are the configured limits of one sandbox.
func limits(c *config.Config) runner.Limits {
	return runner.Limits{
		Memory: c.Sandbox.Memory, CPUs: c.Sandbox.CPUs, PIDs: c.Sandbox.PIDs,
		Disk: c.Sandbox.Disk, Inodes: c.Sandbox.Inodes, OpenFiles: c.Sandbox.OpenFiles,
		Timeout: c.Sandbox.Timeout,
		Stdout:  c.Limits.Stdout, Stderr: c.Limits.Stderr, Output: c.Limits.Output,
	}
}

// hold makes the redactor know every credential that the configuration names.
func hold(redactor *redact.Redactor, c *config.Config) {
	for _, server := range c.Servers {
		for _, secrets := range []map[string]config.Secret{server.Env, server.Headers} {
			for _, secret := range secrets {
				redactor.Hold(secret.Reveal())
			}
		}
	}
}

func newSessionID() string { return telemetry.NewID("ses") }

// principal is the user of the operating system that Airlock runs for.
func principal() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid:%d", os.Getuid())
}
