package system

import (
	"context"
	"sync"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/health"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/redact"
)

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
func (s *System) assemble(servers broker.Upstream, read rules.Reading) error {
	redactor := s.opts.redactors.All
	credentials.Hold(redactor, s.catalog.Config())
	if err := s.openBroker(servers, redactor, read); err != nil {
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
		Past: runs.Interrupted(s.runLog, s.opts.Version, s.opts.Logger),
		Mark: func(id string) string { return s.Node().Mark(id) }})
	s.undo.Add(func() error { s.runs.Close(); return nil })
	s.restorer = &runs.Restorer{Registry: s.runs, Orchestrator: s.orchestrator, Audit: s.directories.Audit,
		Node: s.Node, Logger: s.opts.Logger}
	s.catalog.OnChange(s.orchestrator.Warm)
	if s.opts.Code != nil {
		s.prepareEnd(redactor)
	}
	s.Health = health.New(health.Options{Config: s.config, Images: s.images, Home: s.directories.Home,
		Audit: s.directories.Audit, Serving: s.opts.Serving, Catalog: s.catalog, Sandboxes: s.sandboxes, Runs: s.runs,
		Desk: s.desk, Node: s.Node})
	if s.opts.Serving {
		return s.WatchLevels(s.undo)
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

// openBroker opens the broker with the operator's policies.
func (s *System) openBroker(servers broker.Upstream, redactor *redact.Redactor, read rules.Reading) (err error) {
	s.admission, err = admission.New(admission.Options{Rules: read.Rules, Log: s.log, Logger: s.opts.Logger})
	if err != nil {
		return err
	}
	s.Servers = upstreams.NewServers(s.catalog, s.callers, upstreams.ServersOptions{
		Config: func() *config.Config { return s.Config() }, Admission: s.admission, State: s.state, Log: s.log,
		Receiver: s.receiver})
	s.Rules = rules.New(s.config, read, rules.Options{Directories: s.directories, Reread: s.opts.Reread,
		Notify: s.opts.Notify, Serving: s.opts.Serving, Host: s.opts.Host, Profile: s.opts.Profile, State: s.state,
		Log: s.log, Admission: s.admission, Servers: s.Servers, Clean: s.Gate().Text, Logger: s.opts.Logger})
	opts := &broker.Options{
		Approver: s.questions, Redactor: redactor, Logger: s.opts.Logger, Authority: &s.authority,
		Taint: s.Taint(), SignIns: s.SignIns(), Definitions: s.catalog,
	}
	if s.broker, err = broker.New(servers, s.log, s.admission, opts); err != nil {
		return err
	}
	if s.catalog.Contained() != nil {
		s.catalog.Contained().Authorize(s.broker)
	}
	return nil
}
