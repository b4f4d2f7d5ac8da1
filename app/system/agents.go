package system

import (
	"context"
	"errors"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/database"
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
			a.OnClose(s.adoptRuns(ctx))
		}
	}
	s.authority.Open(a.Authority())
	a.OnClose(s.authority.Close)
	return nil
}
