package system

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
)

// stateVersions are the versions of the state database.
func stateVersions() []string {
	return []string{agents.Schema, auth.Schema, kernelSchema, agents.SchemaInherited, taint.Schema, agents.SchemaLists,
		agents.SchemaDebits, agents.SchemaSelections, auth.SchemaUses, auth.SchemaCreators, auth.SchemaFacts,
		cluster.Schema + approval.Schema, agents.SchemaApprovers,
		cluster.SchemaAddresses, cluster.SchemaValues, cluster.SchemaMoves, suspended.Schema}
}

// state is the database of the agents and tokens: a file of this machine, or that of the cluster. It is opened at its
// first use, because a single run does not need it. Its methods are safe for concurrent use.
type state struct {
	home, keys string // directories
	cluster    config.Cluster
	// joins has the process become a node of the cluster. Otherwise it only uses the database.
	joins   bool
	version string
	logger  *slog.Logger

	mu     sync.Mutex // guards the fields below
	db     *database.DB
	key    *agekey.Key   // of the cluster; nil without one
	node   *cluster.Node // nil if the process is not a node
	closed bool
}

func newState(d setup.Directories, c *config.Config, opts Options) *state {
	return &state{home: d.Home, keys: d.Keys, cluster: c.Cluster, version: opts.Version, logger: opts.Logger}
}

var errStateClosed = errors.New("the state database is closed")

// open returns the database. A failure is not remembered.
func (s *state) open(ctx context.Context) (*database.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errStateClosed
	}
	if s.db != nil {
		return s.db, nil
	}
	err := s.openLocked(ctx)
	if err != nil {
		return nil, errors.Join(err, s.releaseLocked())
	}
	return s.db, nil
}

func (s *state) openLocked(ctx context.Context) (err error) {
	if s.cluster.Database == "" {
		s.db, err = database.Open(ctx, filepath.Join(s.home, stateFile), stateVersions()...)
		return err
	}
	if s.db, s.key, err = openCluster(ctx, s.cluster); err == nil && s.joins {
		err = s.join(ctx)
	}
	return err
}

// joined returns the node that this process is, or nil.
func (s *state) joined() *cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

// identity returns the key that encrypts the agents' signing keys and files.
func (s *state) identity() (*agekey.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	return agekey.LoadOrCreate(filepath.Join(s.keys, agentsKeyFile))
}

func (s *state) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.releaseLocked()
}

func (s *state) releaseLocked() error {
	err := s.node.Close()
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	s.db, s.node = nil, nil
	return err
}
