package system

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/engines"
	appkernel "github.com/airlock-mcp/airlock/app/kernel"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// OpenAgents opens the agent service with the audit log and the approval desk of the system.
// Until then the system denies every act of an agent. The caller must close it before the system.
func (s *System) OpenAgents(ctx context.Context) (*access.Agents, error) {
	db, err := s.state.Open(ctx)
	if err != nil {
		return nil, setup.Advise(err)
	}
	a := access.New(access.Options{Config: s.Config, Database: db, State: s.state, Log: s.log,
		AuditDirectory: s.directories.Audit, Logger: s.opts.Logger})
	if err := s.admit(ctx, a, db); err != nil {
		return nil, errors.Join(setup.Advise(err), a.Close())
	}
	return a, nil
}

// admit lets the agents act, and starts what a node of a cluster does for others.
func (s *System) admit(ctx context.Context, a *access.Agents, db *database.DB) error {
	node := s.Node()
	if err := a.Admit(ctx, s.admission, admission.AgentOptions{Desk: s.desk, Tools: s.Declared, Node: node,
		InForce: s.mayApprove}); err != nil {
		return err
	}
	if err := a.Watch(); err != nil {
		return err
	}
	if node != nil {
		s.authority.SetNode(node)
		a.OnClose(s.desk.Share(ctx, db, node.ID()))
		stopCopies, err := s.startCopies(ctx, db)
		if err != nil {
			return err
		}
		a.OnClose(stopCopies)
		if s.suspended != nil {
			a.OnClose(s.restorer.Adopt(ctx))
		}
	}
	s.authority.Open(a.Authority())
	a.OnClose(s.authority.Close)
	return nil
}

// startCopies copies the files of runs until stop is called, if this node has an object store.
func (s *System) startCopies(ctx context.Context, db *database.DB) (stop func(), err error) {
	if s.config.Cluster.Objects == "" {
		return func() {}, nil
	}
	key, err := s.state.Identity()
	if err != nil {
		return nil, err
	}
	c, err := state.NewCopies(s.config, db, key, s.Node().Name(), s.recordings, s.attachments, s.opts.Logger)
	if err != nil {
		return nil, err
	}
	s.copies.Store(c)
	return c.Start(ctx), nil
}

// OpenKernel opens the kernel with a system and its agents. The caller must close both later than
// the kernel.
func (s *System) OpenKernel(ctx context.Context, known *access.Agents) (*kernel.Service, *iatp.Service, error) {
	return appkernel.Open(ctx, appkernel.Parts{Config: s.config, Admission: s.admission, Agents: known, Log: s.log,
		AuditDirectory: s.directories.Audit, Runs: s.runs, Servers: s.Servers, Rules: s.Rules, Verifier: s.verifier,
		Redactors: s.opts.redactors})
}

// Gateway has the parts that the API of the risk gateway needs.
type Gateway struct {
	Decider *gateway.Gateway
	Jobs    *runs.Jobs
}

// OpenGateway opens the risk gateway of a system. Closing the system closes it. trusted is the
// administrator's switch. If the image with the engines is not built, the error has a hint.
func (s *System) OpenGateway(ctx context.Context, trusted bool) (*Gateway, error) {
	if err := s.verifier.Warm(); err != nil { // each request needs it for an analysis
		return nil, err
	}
	decider, err := gateway.New(gateway.Options{Admission: s.admission, Verifier: s.verifier,
		Recorder: engines.Decisions{Verifier: s.verifier, Log: s.log}, Trusted: trusted, Logger: s.opts.Logger})
	if err != nil {
		return nil, err
	}
	book, err := runs.OpenJobBook(ctx, filepath.Join(s.directories.Home, "jobs"))
	if err != nil {
		return nil, err
	}
	jobs := runs.NewJobs(s.runs, &runs.JobOptions{Book: book, Logger: s.opts.Logger})
	s.undo.Add(jobs.Close)
	s.orchestrator.WarmScripts()
	return &Gateway{decider, jobs}, nil
}
