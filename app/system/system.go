// Package system opens all parts of Airlock in their order and closes them
// again: images, audit log, approvals, recordings, sandboxes, upstream servers,
// policies, broker and orchestrator. The command line and the daemon share it.
package system

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/integrity"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// System connects all parts of Airlock. Its methods except Close are safe for concurrent use.
type System struct {
	config      *config.Config
	opts        Options
	directories setup.Directories
	undo        *cleanup.Stack

	machine
	*upstreams.Servers
	*rules.Rules
	state        *state.State
	catalog      *upstreams.Catalog
	callers      *upstreams.Callers // nil if the tools are fixed
	broker       *broker.Broker
	orchestrator *orchestrator.Orchestrator
	runs         *runs.Registry
	admission    *admission.Service
	authority    auth.Deferred
	verifier     *Verifier
	findHosts    atomic.Pointer[func() []int] // see FindHosts
	receiver     *oauth.Receiver              // see upstreams.Servers
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
	pooled     atomic.Bool // the pool has been filled once

	attachments  *attachment.Store
	copies       atomic.Pointer[copies.Copies] // of the files of runs; nil without an object store
	sessionFiles *sessionfiles.Store           // nil if no session lasts longer than a run
	suspended    orchestrator.SuspendedRuns    // nil if suspended runs end with the process
	unread       []string                      // those that could not be read yet
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
	byPerson := opts.Host == 0 && approval.WidenCheck(s.directories.Home) == nil
	if opts.Serving {
		if !byPerson {
			if err := rules.ConfirmFirst(c, s.directories.Home); err != nil {
				return nil, errors.Join(setup.Advise(err), s.Close())
			}
		}
		role := approval.Serves
		if opts.Host != 0 {
			role = approval.ServesHost
		}
		end, err := approval.Announce(s.directories.Home, role, s.hostsOnThisMachine)
		if err != nil {
			return nil, err
		}
		s.undo.Add(func() error { end(); return nil })
		if end, err = s.announceCluster(); err != nil {
			return nil, errors.Join(setup.Advise(err), s.Close())
		}
		s.undo.Add(func() error { end(); return nil })
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.checkIntegrity(ctx); err != nil {
		return nil, setup.Advise(err)
	}
	if serve := c.Serve; opts.Serving && serve.PublicURL != "" && serve.Console {
		s.receiver = oauth.NewReceiver(serve.PublicURL, func(id string) string { return s.Node().Mark(id) })
	}
	s.verifier = &Verifier{system: s}
	s.undo.Add(s.verifier.close)
	// Check the machine first: connecting servers may take long.
	if err := s.prepare(ctx); err != nil {
		return nil, setup.Advise(err)
	}
	if opts.Serving {
		if err := rules.Admit(ctx, c, s.directories.Home, s.state, s.log, byPerson); err != nil {
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
	if err := s.assemble(servers); err != nil {
		return nil, setup.Advise(err)
	}
	return s, s.restoreRuns(ctx)
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

// prepare opens what belongs to this machine: images, audit log, sandboxes.
func (s *System) prepare(ctx context.Context) error {
	if err := sandboxes.CheckFiles(); err != nil {
		return err
	}
	var err error
	var missing map[string]error
	if s.images, missing, err = sandboxes.OpenImages(s.config, s.directories.Home, s.undo); err != nil {
		return err
	}
	s.noImages = sandboxes.Refusals(ctx, missing, s.opts.Serving, s.opts.Logger)
	if s.log, err = s.state.OpenLog(ctx, s.directories, s.config, s.undo); err != nil {
		return err
	}
	if s.desk, err = approval.OpenDesk(s.directories.Approvals,
		&approval.Options{HostPID: s.opts.Host, Hosts: s.hostsOnThisMachine, InForce: s.mayApprove,
			IsOwn: s.authority.IsOwn, Local: s.localApprover, Escalation: escalation(s.config),
			OnWithdraw: func(ctx context.Context, g approval.Grant, by string) {
				admission.RecordWithdrawal(ctx, s.log, s.opts.Logger, g, by)
			}, Logger: s.opts.Logger}); err != nil {
		return err
	}
	s.undo.Add(s.desk.Close)
	s.questions = runs.NewQuestions(s.desk)
	if keep := s.config.Replay.Keep; keep > 0 {
		if s.recordings, err = replay.Open(s.directories.Recordings,
			&replay.Options{Keys: s.directories.Keys, Keep: keep, Size: s.config.Replay.Size}); err != nil {
			return err
		}
	}
	kept := s.config.Attachments
	if s.attachments, err = attachment.Open(s.directories.Attachments,
		&attachment.Options{Keys: s.directories.Keys, Keep: kept.Keep, Size: kept.Size}); err != nil {
		return err
	}
	if err = s.openSessionFiles(ctx); err != nil {
		return err
	}
	if err = s.openSuspended(ctx); err != nil {
		return err
	}
	if s.sandboxes, err = sandboxes.Open(ctx, s.config, s.directories.Home, s.opts.Serving, s.opts.Logger); err != nil {
		return err
	}
	s.undo.Add(func() error { return sandboxes.Close(ctx, s.sandboxes) })
	return nil
}

// openSessionFiles opens the files that the runs of a session share, or only removes those of killed processes if none
// are kept.
func (s *System) openSessionFiles(ctx context.Context) error {
	limits := s.config.Session
	if limits.Bytes == 0 {
		return sessionfiles.Sweep(ctx, s.directories.Sessions)
	}
	var err error
	s.sessionFiles, err = sessionfiles.Open(ctx, s.directories.Sessions,
		sessionfiles.Limits{Bytes: limits.Bytes, Files: limits.Files}, limits.Size)
	if err == nil {
		s.undo.Add(s.sessionFiles.Close)
	}
	return err
}

// openCatalog opens the catalog and returns the upstream that answers calls of its tools.
func (s *System) openCatalog(ctx context.Context) (broker.Upstream, error) {
	if fixed := s.opts.Fixed; fixed != nil {
		s.catalog = upstreams.Fixed(s.config, fixed.Snapshot, s.opts.ofServers(s.state))
		return fixed.Upstream, nil
	}
	var err error
	if s.catalog, err = upstreams.Open(ctx, s.config, s.opts.ofServers(s.state)); err != nil {
		return nil, err
	}
	s.undo.Add(s.catalog.Close)
	if !s.opts.Serving {
		if err := s.catalog.AwaitNamed(ctx, s.opts.Code); err != nil {
			return nil, err
		}
	}
	s.callers = upstreams.NewCallers(s.catalog)
	s.undo.Add(s.callers.Close)
	return s.callers, nil
}

// assemble opens the parts that need a snapshot and servers.
func (s *System) assemble(servers broker.Upstream) error {
	redactor := s.opts.redactors.All
	credentials.Hold(redactor, s.catalog.Config())
	if err := s.openBroker(servers, redactor); err != nil {
		return err
	}
	script, err := sandboxes.ScriptImage(s.directories.Home, s.opts.Serving, s.opts.Logger, s.undo)
	if err != nil {
		return err
	}
	trusted := ""
	if len(s.config.Networks()) > 0 {
		if trusted, err = sandboxes.Roots(s.directories.Home); err != nil {
			return err
		}
	}
	s.orchestrator, err = orchestrator.New(orchestrator.Parts{
		Runner: s.sandboxes, Broker: s.broker, Audit: s.log, Redactor: redactor, Images: s.images, Missing: s.noImages,
		Script:   script,
		Wrappers: orchestrator.NewWrappers(s.directories.Wrappers, s.opts.Logger), Snapshots: s, Logger: s.opts.Logger,
		Recordings: s.recordings, Attachments: s.attachments, Sessions: s.sessionFiles, Suspended: s.suspended,
	}, orchestrator.Options{
		Limits: sandboxes.Limits(s.config), BackgroundTimeout: s.config.Sandbox.BackgroundTimeout,
		SuspendAfter: s.config.Runs.SuspendAfter,
		Version:      s.opts.Version, Placeholders: s.config.Placeholders,
		Personal: func() redact.Personal { return credentials.Personal(s.Config()) },
		Network:  s.NetworkOf, Dial: s.opts.Dial, Roots: trusted,
		Attachments: attachment.Limits{Files: s.config.Attachments.Files, FileBytes: s.config.Attachments.FileBytes,
			Bytes: s.config.Attachments.Bytes},
	})
	if err != nil {
		return err
	}
	s.undo.Add(func() error { s.orchestrator.Close(); return nil })
	s.runLog = runlog.New(s.directories, s.config, credentials.Printed())
	s.runs = runs.New(s.orchestrator, &runs.Options{Questions: s.questions, While: s.authority.While,
		Past: s.interrupted, Mark: func(id string) string { return s.Node().Mark(id) }})
	s.undo.Add(func() error { s.runs.Close(); return nil })
	s.catalog.OnChange(s.orchestrator.Warm)
	if s.opts.Code != nil {
		s.prepareEnd(redactor)
	}
	if s.opts.Serving {
		return s.watchLevels()
	}
	return nil
}

// prepareEnd prepares the redactor while the sandbox of the only run starts, because the end of the
// run needs it.
func (s *System) prepareEnd(redactor *redact.Redactor) {
	var prepared sync.WaitGroup
	prepared.Go(redactor.Prepare)
	s.undo.Add(func() error { prepared.Wait(); return nil })
}
