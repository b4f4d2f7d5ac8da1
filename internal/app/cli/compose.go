package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
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
	places       places
	logger       *slog.Logger
	images       map[string]runner.Image
	log          *audit.Log
	desk         *approval.Desk
	recordings   *replay.Store
	sandboxes    *runner.Runner
	upstreams    *upstream.Set
	broker       *broker.Broker
	orchestrator *orchestrator.Orchestrator
	snapshot     atomic.Pointer[catalog.Snapshot]
	undo         *cleanup.Stack

	listing sync.Mutex    // one refresh at a time
	changed []pins.Change // tools that the snapshot withholds

	policySources [sha256.Size]byte // of the policy files as they were read last
}

// places are the folders that a system works in.
type places struct {
	home, audit, keys, wrappers, approvals, recordings string
}

func findPlaces(c *config.Config) (places, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return places{}, err
	}
	return places{
		home: home, audit: auditDir(c, home), keys: store.Keys(home),
		wrappers: store.Wrappers(home), approvals: store.Approvals(home), recordings: store.Recordings(home),
	}, nil
}

// purpose says what a system is opened for.
type purpose struct {
	serving  bool // many runs: sandboxes are kept ready
	jsonLogs bool
}

// open puts everything together that a run needs. The caller closes the system.
func open(ctx context.Context, flag configFlag, stderr io.Writer, p purpose) (_ *system, err error) {
	c, err := flag.load(stderr)
	if err != nil {
		return nil, err
	}
	places, err := findPlaces(c)
	if err != nil {
		return nil, err
	}
	s := &system{config: c, places: places, logger: newLogger(stderr, p.jsonLogs, slog.LevelWarn), undo: &cleanup.Stack{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// What a machine lacks is known at once; servers may take their time.
	if err := s.prepare(ctx, p.serving); err != nil {
		return nil, advise(err)
	}
	if err := s.connect(ctx, stderr); err != nil {
		return nil, err
	}
	if err := s.finish(s.upstreams); err != nil {
		return nil, advise(err)
	}
	if p.serving {
		return s, s.orchestrator.Warm(ctx)
	}
	return s, nil
}

// prepare opens what belongs to this machine: images, audit log, sandboxes.
// pooled keeps sandboxes ready.
func (s *system) prepare(ctx context.Context, pooled bool) error {
	var err error
	if s.images, err = openImages(s.places.home, s.undo); err != nil {
		return err
	}
	if s.log, err = audit.Open(s.places.audit, &audit.Options{
		Keys: s.places.keys, ClearArguments: s.config.Audit.ClearArguments,
	}); err != nil {
		return err
	}
	s.undo.Add(s.log.Close)
	if s.desk, err = approval.OpenDesk(s.places.approvals, &approval.Options{Logger: s.logger}); err != nil {
		return err
	}
	if s.recordings, err = replay.Open(s.places.recordings, &replay.Options{Keys: s.places.keys}); err != nil {
		return err
	}
	if s.sandboxes, err = openRunner(s.config, s.places.home, pooled, s.logger); err != nil {
		return err
	}
	s.undo.Add(func() error { return closeRunner(ctx, s.sandboxes) })
	return nil
}

// finish puts the parts together that need a snapshot and somebody to call.
func (s *system) finish(servers broker.Upstream) error {
	redactor := redact.New()
	hold(redactor, s.config)
	if err := s.openBroker(servers, redactor); err != nil {
		return err
	}
	s.listing.Lock() // a server that changes its list looks for the orchestrator
	defer s.listing.Unlock()
	var err error
	s.orchestrator, err = orchestrator.New(orchestrator.Parts{
		Runner: s.sandboxes, Broker: s.broker, Audit: s.log, Redactor: redactor, Images: s.images,
		Wrappers: orchestrator.NewWrappers(s.places.wrappers, s.logger), Snapshots: s, Logger: s.logger,
		Recordings: s.recordings,
	}, orchestrator.Options{Limits: limits(s.config), Version: version})
	if err != nil {
		return err
	}
	s.undo.Add(func() error { s.orchestrator.Close(); return nil })
	return nil
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
func (s *system) connect(ctx context.Context, stderr io.Writer) error {
	if err := resolveSecrets(ctx, s.config); err != nil {
		return err
	}
	set, err := upstream.New(upstreamConfigs(s.config), &upstream.Options{
		// What goes wrong while they start is told below, once and in words.
		Logger: newLogger(stderr, false, slog.LevelError), Version: version, OnChange: func(string) { s.listAgain(ctx) },
	})
	if err != nil {
		return fmt.Errorf("preparing the servers: %w", err)
	}
	s.undo.Add(set.Close)
	s.upstreams = set
	set.Connect(ctx)
	s.listing.Lock()
	defer s.listing.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	s.tellMissing(stderr)
	tellChanged(stderr, s.changed)
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

// refresh makes a new snapshot of what the servers now offer, without the tools
// that changed behind the operator's back. The caller holds listing.
func (s *system) refresh(ctx context.Context) error {
	book, err := openPins(s.config)
	if err != nil {
		return err
	}
	servers := s.upstreams.Servers()
	report, err := book.Check(ctx, servers, time.Now())
	if err != nil {
		return fmt.Errorf("comparing the tools with those seen before: %w", err)
	}
	snapshot, err := catalog.NewSnapshot(withhold(servers, report.Changed))
	if err != nil {
		return err
	}
	s.changed = report.Changed
	s.snapshot.Store(snapshot)
	return nil
}

// listAgain is refresh for a server that changed its list later. Where that
// fails the last good snapshot stays.
func (s *system) listAgain(ctx context.Context) {
	s.listing.Lock()
	defer s.listing.Unlock()
	if err := s.refresh(ctx); err != nil {
		s.logger.ErrorContext(ctx, "the tools of the servers make no snapshot", slog.Any(telemetry.KeyError, err))
		return
	}
	if s.orchestrator != nil {
		if err := s.orchestrator.Warm(ctx); err != nil {
			s.logger.WarnContext(ctx, "no sandboxes are kept ready for the changed tools", slog.Any(telemetry.KeyError, err))
		}
	}
	for _, c := range s.changed {
		s.logger.WarnContext(ctx, "a tool changed its definition and is withheld",
			slog.String(telemetry.KeyServer, c.ServerID), slog.String(telemetry.KeyTool, c.ToolName))
	}
}

// listTools connects the servers only to see their tools.
func listTools(ctx context.Context, flag configFlag, stderr io.Writer) (*catalog.Snapshot, error) {
	c, err := flag.load(stderr)
	if err != nil {
		return nil, err
	}
	if len(c.Servers) == 0 {
		return nil, &usageError{"no server is configured", "write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	s := &system{config: c, logger: newLogger(stderr, false, slog.LevelWarn), undo: &cleanup.Stack{}}
	err = s.connect(ctx, stderr)
	return s.Snapshot(), errors.Join(err, s.Close())
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

// auditDir is where the audit log lies.
func auditDir(c *config.Config, home string) string {
	if c.Audit.Path != "" {
		return c.Audit.Path
	}
	return store.Audit(home)
}

func openRunner(c *config.Config, home string, pooled bool, logger *slog.Logger) (*runner.Runner, error) {
	driver, err := newDriver(c, logger)
	if err != nil {
		return nil, err
	}
	const none = -1 // the runner's word for a count of zero
	waiting, pool := c.Sandbox.Queue, c.Sandbox.Pool
	if waiting == 0 {
		waiting = none
	}
	if pool == 0 || !pooled {
		pool = none
	}
	return runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(home, os.Getenv), MaxSandboxes: c.Sandbox.MaxSandboxes, MaxWaiting: waiting, Pool: pool,
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
