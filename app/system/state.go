package system

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/internal/database"
)

// stateVersions are the versions of the state database.
func stateVersions() []string {
	return []string{agents.Schema, auth.Schema, kernelSchema, agents.SchemaInherited, taint.Schema, agents.SchemaLists,
		agents.SchemaDebits, agents.SchemaSelections, auth.SchemaUses}
}

// openState opens the state database.
func openState(ctx context.Context, home string) (*database.DB, error) {
	return database.Open(ctx, filepath.Join(home, "state.db"), stateVersions()...)
}

// state is the state database of a system. It is opened at its first use, because a single run does
// not need it. Its methods are safe for concurrent use.
type state struct {
	home string

	mu     sync.Mutex // guards the fields below
	db     *database.DB
	closed bool
}

var errStateClosed = errors.New("the state database is closed")

// open returns the database. A failure is not remembered.
func (s *state) open(ctx context.Context) (_ *database.DB, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errStateClosed
	}
	if s.db == nil {
		s.db, err = openState(ctx, s.home)
	}
	return s.db, err
}

func (s *state) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}
