package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

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
// pooled keeps sandboxes ready for an agent's host, which has started us.
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
	host := 0
	if pooled {
		host = os.Getppid()
	}
	if s.desk, err = approval.OpenDesk(s.places.approvals, &approval.Options{HostPID: host, Logger: s.logger}); err != nil {
		return err
	}
	if keep := s.config.Replay.Keep; keep > 0 {
		if s.recordings, err = replay.Open(s.places.recordings, &replay.Options{Keys: s.places.keys, Keep: keep}); err != nil {
			return err
		}
	}
	if s.sandboxes, err = openRunner(ctx, s.config, s.places.home, s.images, pooled, s.logger); err != nil {
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
	}, orchestrator.Options{Limits: limits(s.config), Version: version, Placeholders: s.config.Placeholders})
	if err != nil {
		return err
	}
	s.undo.Add(func() error { s.orchestrator.Close(); return nil })
	return nil
}

// Close ends all runs and removes everything. It returns when nothing is left.
func (s *system) Close() error { return s.undo.Run() }
