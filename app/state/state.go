// Package state opens what Airlock stores beside runs: the state database of this machine or of its cluster, with
// its keys, sign-ins and pins, and the audit log. It also moves a state, encrypts it again, and erases from it.
package state

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/clusterlimit"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/vfs"
)

// kernelSchema creates the tables of the kernel in the database of agents.
const kernelSchema = vfs.Schema + iatp.Schema

// agentsKeyFile holds the key that encrypts the agents' signing keys and files.
const agentsKeyFile = "agents-age.key"

// Versions returns the schema of each version of the state database, as database.Open takes them.
func Versions() []string {
	return []string{agents.Schema, auth.Schema, kernelSchema, agents.SchemaInherited, taint.Schema, agents.SchemaLists,
		agents.SchemaDebits, agents.SchemaSelections, auth.SchemaUses, auth.SchemaCreators, auth.SchemaFacts,
		cluster.Schema + approval.Schema, agents.SchemaApprovers,
		cluster.SchemaAddresses, cluster.SchemaValues, cluster.SchemaMoves, suspended.Schema,
		cluster.SchemaLoads, clusterlog.Schema, oauth.Schema + pins.Schema, clusterlog.SchemaCopies,
		auth.SchemaSignOuts, approval.SchemaGrants + trust.Schema + copies.Schema,
		clusterlimit.Schema, cluster.SchemaHomes, clusterlimit.SchemaCalls, clusterlog.SchemaRuns}
}

// State is the database of the agents and tokens: a file of this machine, or that of the cluster. It is opened at its
// first use, because a single run does not need it. Its methods are safe for concurrent use.
type State struct {
	home, keys string // directories
	cluster    config.Cluster
	opts       Options
	signIns    *oauth.Store

	mu     sync.Mutex // guards the fields below
	db     *database.DB
	key    *agekey.Key   // of the cluster; nil without one
	node   *cluster.Node // nil if the process is not a node
	closed bool
}

// Options are the options of New.
type Options struct {
	Version string       // Airlock's own
	Logger  *slog.Logger // nil logs nothing
	// Joins has the process become a node of the cluster. Otherwise it only uses the database.
	Joins bool
}

// New returns the state that a configuration names. The caller must close it.
func New(d setup.Directories, c *config.Config, opts Options) *State {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &State{home: d.Home, keys: d.Keys, cluster: c.Cluster, opts: opts}
	signIns := oauth.StoreOptions{Database: s.Open, Key: s.Identity, Directory: store.SignIns(d.Home),
		FormerKey: filepath.Join(d.Keys, "oauth.key"), Fresh: freshFile}
	if s.IsShared() {
		signIns.Fresh = freshRow
	}
	s.signIns = oauth.NewStore(signIns)
	return s
}

// freshRow is how long a node uses a sign-in before it asks the database of the cluster for changes by other processes.
// On a single machine, the requests of one call share a read.
const freshRow, freshFile = 500 * time.Millisecond, 5 * time.Millisecond

// IsShared reports whether the state is that of a cluster.
func (s *State) IsShared() bool { return s.cluster.Database != "" }

// joins reports whether the process becomes a node of a cluster.
func (s *State) joins() bool { return s.IsShared() && s.opts.Joins }

// SignIns returns the sign-ins to servers.
func (s *State) SignIns() *oauth.Store { return s.signIns }

// With opens the state of a configuration for a command that does not open a system.
func With(c *config.Config, version string, use func(*State) error) (err error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	s := New(directories, c, Options{Version: version})
	defer func() { err = errors.Join(err, s.Close()) }()
	return use(s)
}

var errStateClosed = errors.New("the state database is closed")

// Open returns the database. A failure is not remembered.
func (s *State) Open(ctx context.Context) (*database.DB, error) {
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

func (s *State) openLocked(ctx context.Context) (err error) {
	if !s.IsShared() {
		s.db, err = database.Open(ctx, filepath.Join(s.home, stateFile), Versions()...)
		return err
	}
	if s.db, s.key, err = openCluster(ctx, s.cluster); err == nil && s.opts.Joins {
		err = s.join(ctx)
	}
	return err
}

// Node returns the node that this process is, or nil.
func (s *State) Node() *cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

// Identity returns the key that encrypts the agents' signing keys and files.
func (s *State) Identity() (*agekey.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	return agekey.LoadOrCreate(filepath.Join(s.keys, agentsKeyFile))
}

// Close closes what Open has opened. It may be called twice.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.releaseLocked()
}

func (s *State) releaseLocked() error {
	err := s.node.Close()
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	s.db, s.node = nil, nil
	return err
}
