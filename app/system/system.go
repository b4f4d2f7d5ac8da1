// Package system opens all parts of Airlock in their order and closes them
// again: images, audit log, approvals, recordings, sandboxes, upstream servers,
// policies, broker and orchestrator. Command line, servers and jobs share it.
package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/integrity"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// Options are the options of Open. Version is required.
type Options struct {
	Version string       // Airlock's own, as records and servers see it
	Logger  *slog.Logger // nil logs nothing
	// Notify is called with notices for people, and must be safe for concurrent use. If it is nil,
	// notices are dropped.
	Notify func(Notice)
	// Reread reads the configuration file again, for Reload and Watch. If it is nil, only policy
	// files are read again.
	Reread func() (*config.Config, error)
	// Serving keeps sandboxes ready for many runs.
	Serving bool
	// Environ is the environment to check for variables that load code into programs. If Thorough
	// is set, whole images are read and checked before anything is opened.
	Environ  []string
	Thorough bool
	// Host is the process ID of the agent host that is served, or 0. Processes that belong to the
	// host may not answer approvals.
	Host int
	// Directories replace the configured directories if not nil.
	Directories *setup.Directories
	// Code is the program if the system is opened for only one run. The system waits only briefly
	// for servers that the program does not name.
	Code []byte
	// Durable has suspended runs go on in the next process with the same state directory. Only one process of it may
	// be durable.
	Durable bool
	// Tools is the source of the first list of tools.
	Tools ToolSource
	// Profile is the profile of all callers; servers outside of it are not started. If it is empty,
	// each caller has its own profile or none.
	Profile string
	// Dial opens the permitted connections of code and contained servers; nil means to public addresses only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Trial is the trial of a contained server; nil means none.
	Trial *contained.Trial
	// Fixed replaces the configured servers. If it is nil, the configured servers are connected.
	Fixed *Fixed

	gate *gate // set by withDefaults
}

// Notice is one sentence for a person, with advice.
type Notice struct {
	Text, Hint string
	Server     string // the server that it is about; may be empty
}

// Fixed has tools whose calls this process answers itself.
type Fixed struct {
	Snapshot *catalog.Snapshot
	Upstream broker.Upstream
}

// withDefaults sets the defaults of missing options.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Notify == nil {
		o.Notify = func(Notice) {}
	}
	if o.gate == nil {
		o.gate = newGate()
		o = o.gate.options(o)
	}
	return o
}

// System connects all parts of Airlock. Its methods except Close are safe for concurrent use.
type System struct {
	config      *config.Config
	opts        Options
	directories setup.Directories
	undo        *cleanup.Stack

	machine
	state        *state
	catalog      *Catalog
	callers      *callers // nil if the tools are fixed
	rules        *rules
	broker       *broker.Broker
	orchestrator *orchestrator.Orchestrator
	runs         *runs.Registry
	admission    *admission.Service
	authority    authority
	verifier     *Verifier
	findHosts    atomic.Pointer[func() []int] // see FindHosts
	receiver     *oauth.Receiver              // see Receiver
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
	sessionFiles *sessionfiles.Store        // nil if no session lasts longer than a run
	suspended    orchestrator.SuspendedRuns // nil if suspended runs end with the process
	unread       []string                   // those that could not be read yet
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
	s.state = newState(s.directories, c, s.opts)
	s.state.joins = s.opts.Durable
	s.undo.Add(s.state.close)
	byPerson := opts.isPersons(s.directories.Home)
	if opts.Serving {
		if !byPerson {
			if err := confirmFirst(c, s.directories.Home); err != nil {
				return nil, errors.Join(setup.Advise(err), s.Close())
			}
		}
		role := approval.Serves
		if opts.Host != 0 {
			role = approval.ServesHost
		}
		end, err := approval.Announce(s.directories.Home, role, s.connectedHosts)
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
	if err := s.admit(ctx, byPerson); err != nil {
		return nil, setup.Advise(err)
	}
	if err := s.recordEgress(ctx); err != nil {
		return nil, setup.Advise(err)
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
	if err := checkFiles(); err != nil {
		return err
	}
	var err error
	var missing map[string]error
	if s.images, missing, err = openImages(s.config, s.directories.Home, s.undo); err != nil {
		return err
	}
	s.noImages = s.refuseMissing(ctx, missing)
	if s.log, err = audit.Open(s.directories.Audit, auditOptions(s.directories, s.config.Audit)); err != nil {
		return err
	}
	s.undo.Add(s.log.Close)
	if s.desk, err = approval.OpenDesk(s.directories.Approvals,
		&approval.Options{HostPID: s.opts.Host, Hosts: s.connectedHosts, InForce: s.mayApprove,
			Local: s.localApprover, Escalation: escalation(s.config), OnWithdraw: s.recordWithdrawal,
			Logger: s.opts.Logger}); err != nil {
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
	if s.sandboxes, err = openRunner(ctx, s.config, s.directories.Home, s.opts.Serving, s.opts.Logger); err != nil {
		return err
	}
	s.undo.Add(func() error { return closeRunner(ctx, s.sandboxes) })
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

// auditOptions returns the options of the configured audit log.
func auditOptions(d setup.Directories, c config.Audit) *audit.Options {
	o := &audit.Options{Keys: d.Keys, Keep: c.Keep, ClearArguments: c.ClearArguments}
	if c.KeepArguments > 0 {
		o.KeepArguments = &audit.ArgumentsOptions{Keep: c.KeepArguments, Size: c.ArgumentsSize}
	}
	if c.Witness != "" {
		o.Witness = &audit.WitnessOptions{Address: c.Witness, Key: c.WitnessKey, Delay: c.WitnessDelay}
	}
	return o
}

// openCatalog opens the catalog and returns the upstream that answers calls of its tools.
func (s *System) openCatalog(ctx context.Context) (broker.Upstream, error) {
	if fixed := s.opts.Fixed; fixed != nil {
		s.catalog = &Catalog{opts: s.opts}
		s.catalog.config.Store(s.config)
		s.catalog.snapshot.Store(fixed.Snapshot)
		return fixed.Upstream, nil
	}
	var err error
	if s.catalog, err = OpenCatalog(ctx, s.config, s.opts); err != nil {
		return nil, err
	}
	s.undo.Add(s.catalog.Close)
	if !s.opts.Serving {
		if err := s.awaitServers(ctx, s.opts.Code); err != nil {
			return nil, err
		}
	}
	s.callers = newCallers(s.catalog)
	s.undo.Add(s.callers.Close)
	return s.callers, nil
}

// unnamedTimeout is how long one run waits for servers that its program does not name.
const unnamedTimeout = 5 * time.Second

// awaitServers waits for the servers that a single run may use. It first waits at most
// unnamedTimeout for the servers with the IDs, or for all if there are no IDs. Then it waits for
// those that the program names until they have answered or failed.
func (s *System) awaitServers(ctx context.Context, code []byte, serverIDs ...string) error {
	limited, cancel := context.WithTimeout(ctx, unnamedTimeout)
	defer cancel()
	if err := s.catalog.Await(limited, serverIDs...); err == nil || ctx.Err() != nil {
		return err
	}
	named := orchestrator.StartingServers(s.catalog.Snapshot(), string(code))
	if len(named) == 0 {
		return nil
	}
	return s.catalog.Await(ctx, named...)
}

// AwaitFor waits like a single run for the servers that a program may use with a profile and that
// have not answered yet. It returns an error only if ctx ends.
func (s *System) AwaitFor(ctx context.Context, code []byte, profile string) error {
	if s.opts.Fixed != nil {
		return nil
	}
	var starting []string
	for _, server := range seen(s.Config(), profile) {
		if slices.ContainsFunc(s.catalog.Snapshot().Missing(server.ID),
			func(m catalog.MissingServer) bool { return m.Starting }) {
			starting = append(starting, server.ID)
		}
	}
	if len(starting) == 0 {
		return nil
	}
	return s.awaitServers(ctx, code, starting...)
}

// assemble opens the parts that need a snapshot and servers.
func (s *System) assemble(servers broker.Upstream) error {
	redactor := s.opts.gate.all
	holdCredentials(redactor, s.catalog.config.Load())
	if err := s.openBroker(servers, redactor); err != nil {
		return err
	}
	script, err := s.scriptImage()
	if err != nil {
		return err
	}
	trusted := ""
	if len(s.config.Networks()) > 0 {
		if trusted, err = roots(s.directories.Home); err != nil {
			return err
		}
	}
	s.orchestrator, err = orchestrator.New(orchestrator.Parts{
		Runner: s.sandboxes, Broker: s.broker, Audit: s.log, Redactor: redactor, Images: s.images, Missing: s.noImages,
		Script:   script,
		Wrappers: orchestrator.NewWrappers(s.directories.Wrappers, s.opts.Logger), Snapshots: s, Logger: s.opts.Logger,
		Recordings: s.recordings, Attachments: s.attachments, Sessions: s.sessionFiles, Suspended: s.suspended,
	}, orchestrator.Options{
		Limits: sandboxLimits(s.config), BackgroundTimeout: s.config.Sandbox.BackgroundTimeout,
		SuspendAfter: s.config.Runs.SuspendAfter,
		Version:      s.opts.Version, Placeholders: s.config.Placeholders,
		Personal: func() redact.Personal { return personalData(s.Config()) },
		Network:  s.NetworkOf, Dial: s.opts.Dial, Roots: trusted,
		Attachments: attachment.Limits{Files: s.config.Attachments.Files, FileBytes: s.config.Attachments.FileBytes,
			Bytes: s.config.Attachments.Bytes},
	})
	if err != nil {
		return err
	}
	s.undo.Add(func() error { s.orchestrator.Close(); return nil })
	s.runLog = runlog.New(s.directories, s.config, Printed())
	s.runs = runs.New(s.orchestrator, &runs.Options{Questions: s.questions, While: s.authority.While,
		Past: s.interrupted, Mark: func(id string) string { return s.Node().Mark(id) }})
	s.undo.Add(func() error { s.runs.Close(); return nil })
	s.catalog.onChange(s.orchestrator.Warm)
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

// Admission returns the decisions about all acts, until the system is closed.
func (s *System) Admission() *admission.Service { return s.admission }

// Profile returns the name of the profile that all callers have, or "".
func (s *System) Profile() string { return s.opts.Profile }

// Snapshot returns the newest definitions of the tools that the caller sees. If the profile of the
// caller is unknown, or the caller may not see tools, it is empty.
func (s *System) Snapshot(who caller.Caller) *catalog.Snapshot {
	snapshot := s.catalog.Snapshot()
	view, err := s.broker.View(who, snapshot)
	shown := caller.Object{Kind: caller.Tool, Owner: caller.Owner{Profile: who.Profile}}
	if err != nil || !who.May(caller.People, caller.See, shown) {
		return snapshot.Within(nothing)
	}
	return view
}

// Shared returns the newest definitions of the tools of a caller without a separate profile.
func (s *System) Shared() *catalog.Snapshot {
	snapshot := s.catalog.Snapshot()
	view, err := s.broker.View(caller.Caller{Profile: s.opts.Profile}, snapshot)
	if err != nil {
		return snapshot.Within(nothing)
	}
	return view
}

// mayChange reports whether a caller may change a server or its tools: its profile shows the server, and
// it has the scope.
func (s *System) mayChange(who caller.Caller, serverID string) bool {
	o := caller.Object{Kind: caller.Server}
	if _, shown := s.Snapshot(who).Server(serverID); shown {
		o.Owner.Profile = who.Profile
	}
	return who.May(caller.People, caller.Change, o)
}

// nothing is the profile that shows no tools.
var nothing = &catalog.Profile{}

// Await waits until the snapshot has the tools of the named servers or their problems. It returns
// an error if ctx ends first.
func (s *System) Await(ctx context.Context, serverIDs ...string) error {
	return s.catalog.Await(ctx, serverIDs...)
}

// Runs returns the registry of all runs.
func (s *System) Runs() *runs.Registry { return s.runs }

// Face returns the configuration of the interface for agent hosts.
func (s *System) Face() config.Face { return s.config.Face }

// Attachments returns the store of files that runs attached.
func (s *System) Attachments() *attachment.Store { return s.attachments }

// Orchestrator returns the orchestrator, which executes runs until the system is closed.
func (s *System) Orchestrator() *orchestrator.Orchestrator { return s.orchestrator }

// Approvals returns the desk where calls wait for a person.
func (s *System) Approvals() *approval.Desk { return s.desk }

// FindHosts sets the function that returns the processes of hosts that are connected over the network. It is called
// when a process wants to approve a call or to widen what agents can do, and must be safe for concurrent use.
func (s *System) FindHosts(find func() []int) { s.findHosts.Store(&find) }

func (s *System) connectedHosts() []int {
	if find := s.findHosts.Load(); find != nil {
		return (*find)()
	}
	return nil
}

// ServerIDs returns the IDs of the configured servers that callers see, in order.
func (s *System) ServerIDs() []string {
	var ids []string
	for _, server := range seen(s.Config(), s.opts.Profile) {
		ids = append(ids, server.ID)
	}
	return ids
}

// Principal returns the user of the operating system that Airlock runs for.
func Principal() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid:%d", os.Getuid())
}

// Logger returns the logger of the system. It redacts secrets.
func (s *System) Logger() *slog.Logger { return s.opts.Logger }
