// Package system opens all parts of Airlock in their order, connects them, and closes them in reverse. Decisions about
// a part are in the package of the part. The command line and the daemon share it.
package system

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/engines"
	"github.com/airlock-mcp/airlock/app/health"
	"github.com/airlock-mcp/airlock/app/integrity"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

// System connects all parts of Airlock, and embeds those that commands and the daemon use directly. Its methods except
// Close are safe for concurrent use.
type System struct {
	config      *config.Config
	opts        Options
	directories setup.Directories
	undo        *cleanup.Stack

	machine
	*upstreams.Servers
	*rules.Rules
	*health.Health
	state        *state.State
	catalog      *upstreams.Catalog
	callers      *upstreams.Callers // nil if the tools are fixed
	broker       *broker.Broker
	orchestrator *orchestrator.Orchestrator
	runs         *runs.Registry
	restorer     *runs.Restorer
	admission    *admission.Service
	authority    auth.Deferred
	hosts        hosts
}

// machine has the parts that do not depend on the configured servers.
type machine struct {
	images     map[string]runner.Image // by language
	noImages   map[string]error        // why a language has none
	log        *audit.Log
	runLog     *runlog.Log // the runs in log
	desk       *approval.Desk
	questions  *runs.Questions // passes the questions of all runs to desk
	recordings *replay.Store   // nil if recordings are switched off
	sandboxes  *runner.Runner
	verifier   *engines.Verifier
	receiver   *oauth.Receiver // see upstreams.Servers

	attachments  *attachment.Store
	copies       atomic.Pointer[copies.Copies] // of the files of runs; nil without an object store
	sessionFiles *sessionfiles.Store           // nil if no session lasts longer than a run
	suspended    orchestrator.SuspendedRuns    // nil if suspended runs end with the process
}

// Open opens everything that runs need. The caller must close the system.
// Errors that a user can correct have a method Hint() string.
func Open(ctx context.Context, c *config.Config, opts Options) (_ *System, err error) {
	s := &System{config: c, opts: opts.withDefaults(), undo: &cleanup.Stack{}}
	if _, err := c.Profile(opts.Profile); opts.Profile != "" && err != nil {
		return nil, err
	}
	if opts.Directories != nil {
		s.directories = *opts.Directories
	} else if s.directories, err = setup.FindDirectories(c); err != nil {
		return nil, err
	}
	s.state = state.New(s.directories, c,
		state.Options{Version: s.opts.Version, Logger: s.opts.Logger, Joins: s.opts.Durable})
	s.undo.Add(s.state.Close)
	// A process that a person has started, and not an agent's host, may permit more than before. This is asked before
	// the process announces itself.
	byPerson := opts.Host == 0 && state.WidenCheck(c, s.directories.Home) == nil
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if opts.Serving {
		if err := s.announce(byPerson); err != nil {
			return nil, setup.Advise(err)
		}
	}
	if err := s.checkIntegrity(ctx); err != nil {
		return nil, setup.Advise(err)
	}
	if serve := c.Serve; opts.Serving && serve.PublicURL != "" && serve.Console {
		s.receiver = oauth.NewReceiver(serve.PublicURL, func(id string) string { return s.Node().Mark(id) })
	}
	s.verifier = engines.New(engines.Options{Config: c, Home: s.directories.Home, Serving: opts.Serving,
		Logger: s.opts.Logger})
	s.undo.Add(s.verifier.Close)
	// Check the machine first: connecting servers may take long.
	if err := s.prepare(ctx); err != nil {
		return nil, setup.Advise(err)
	}
	read, err := rules.Read(c) // once: the files that are admitted are those in force
	if err != nil {
		return nil, setup.Advise(err)
	}
	if opts.Serving {
		if err := rules.Admit(ctx, c, read, s.directories.Home, s.state, s.log, byPerson); err != nil {
			return nil, setup.Advise(err)
		}
		if err := upstreams.RecordEmbeddings(ctx, c, s.log); err != nil {
			return nil, setup.Advise(err)
		}
	}
	servers, err := s.openCatalog(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.assemble(servers, read); err != nil {
		return nil, setup.Advise(err)
	}
	return s, s.restorer.Restore(ctx)
}

// checkIntegrity returns an error if the installation was tampered with. It is called before any
// state is opened.
func (s *System) checkIntegrity(ctx context.Context) error {
	found, err := integrity.Check(ctx, s.config, s.opts.Environ, s.opts.Thorough)
	if err != nil {
		return err
	}
	return found.Err()
}

// Close ends all runs and removes everything. It returns when nothing is left.
// It may be called twice.
func (s *System) Close() error { return s.undo.Run() }
