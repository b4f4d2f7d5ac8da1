// Package iatp establishes trust between agents: keys for each agent, attestations signed with
// them, manifests of an agent's capabilities, and a reputation in the form of an event log. An
// agent that is neither registered nor pinned is unknown, and an unknown agent is never trusted.
//
// Signatures are Ed25519 (RFC 8032) over the pre-authentication encoding of DSSE v1 around
// canonical JSON (RFC 8785). See docs/kernel.md.
package iatp

import (
	"context"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Version is the name of the protocol version in attestations.
const Version = "iatp-1.0"

// Schema creates the tables of keys, manifests, used attestations and reputation.
const Schema = `
CREATE TABLE agent_key (
	id      TEXT PRIMARY KEY, -- RFC 7638 thumbprint
	agent   TEXT NOT NULL,
	public  BLOB NOT NULL,    -- 32 bytes
	sealed  BLOB,             -- the private key, encrypted with age; NULL of agents that sign elsewhere
	created INTEGER NOT NULL, -- seconds since 1970
	expires INTEGER NOT NULL,
	revoked INTEGER NOT NULL  -- 0: not
) STRICT;
CREATE INDEX agent_key_agent ON agent_key (agent, created);
CREATE TABLE manifest (
	agent    TEXT PRIMARY KEY,
	envelope TEXT NOT NULL,    -- DSSE
	level    TEXT NOT NULL,    -- the operator's word, whatever the manifest claims
	remote   INTEGER NOT NULL, -- 1: pinned, of an agent that is not registered here
	issued   INTEGER NOT NULL
) STRICT;
CREATE TABLE attestation (
	agent   TEXT NOT NULL,
	nonce   TEXT NOT NULL,
	expires INTEGER NOT NULL,
	PRIMARY KEY (agent, nonce)
) STRICT, WITHOUT ROWID;
CREATE INDEX attestation_expires ON attestation (expires);
CREATE TABLE reputation (
	seq      INTEGER PRIMARY KEY,
	agent    TEXT NOT NULL,
	time     INTEGER NOT NULL,
	change   INTEGER NOT NULL, -- hundredths of a point
	severity TEXT NOT NULL,
	reason   TEXT NOT NULL,
	evidence TEXT NOT NULL,    -- canonical JSON; empty: there was none
	author   TEXT NOT NULL
) STRICT;
CREATE INDEX reputation_agent ON reputation (agent, seq);`

// Agents looks up registered agents. *agents.Service implements it.
type Agents interface {
	// Find returns an agent, or agents.ErrUnknown. It is safe for concurrent use.
	Find(ctx context.Context, id string) (agents.Agent, error)
}

// Log records changes of keys, manifests and reputations before they happen. It is an audit.Log.
type Log interface {
	Append(ctx context.Context, r audit.Record) error
}

// Options of a service. All except Now are required.
type Options struct {
	Database *database.DB // with the tables of Schema and of the agents
	Agents   Agents
	Log      Log
	Identity *agekey.Key      // encrypts private keys
	Now      func() time.Time // nil means time.Now
}

// Service signs and verifies for agents. Its methods are safe for concurrent use.
type Service struct{ opts Options }

// New returns a service.
func New(opts Options) (*Service, error) {
	if opts.Database == nil || opts.Agents == nil || opts.Log == nil || opts.Identity == nil {
		return nil, errors.New("trust between agents needs a database, agents, a log and an identity")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Service{opts}, nil
}

func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Second) }

// record records a change by an operator before it is made.
func (s *Service) record(ctx context.Context, by, what string) error {
	return s.opts.Log.Append(ctx, audit.Record{Kind: audit.KindOperator, Identity: audit.Identity{Principal: by},
		Detail: what})
}

// A Refusal is the reason why a request is refused, in a sentence for the caller.
type Refusal struct{ Text string }

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }
