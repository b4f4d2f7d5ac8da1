package iatp

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Level is the operator's trust in an agent.
type Level string

// The levels. Only the first three can be required.
const (
	VerifiedPartner Level = "verified_partner"
	Trusted         Level = "trusted"
	Standard        Level = "standard"
	Unknown         Level = "unknown"
	Untrusted       Level = "untrusted"
)

// Levels are all levels, from the highest.
var Levels = []Level{VerifiedPartner, Trusted, Standard, Unknown, Untrusted}

// score returns the points of a level, without bonuses.
func (l Level) score() Score {
	switch l {
	case VerifiedPartner:
		return 1000
	case Trusted:
		return 700
	case Standard:
		return 500
	case Unknown:
		return 200
	}
	return 0
}

// levelOf returns the default level of a registered agent.
func levelOf(t agents.Type) Level {
	switch t {
	case agents.Trusted:
		return VerifiedPartner
	case agents.Autonomous:
		return Trusted
	case agents.Supervised:
		return Standard
	}
	return Untrusted
}

// Values in a manifest: data retention and reversibility.
var (
	Retentions      = []string{"ephemeral", "session", "permanent"}
	Reversibilities = []string{"full", "partial", "none"}
)

// Manifest describes an agent's capabilities. The agent signs it.
type Manifest struct {
	Agent         string   `json:"agent_id"`
	Scopes        []string `json:"scopes"`
	Retention     string   `json:"retention"`     // a value of Retentions
	Reversibility string   `json:"reversibility"` // a value of Reversibilities
	Issued        string   `json:"issued"`        // RFC 3339, UTC
	Expires       string   `json:"expires"`       // likewise
	Version       string   `json:"protocol_version"`
}

// Check returns an error for an invalid manifest.
func (m *Manifest) Check() error {
	if err := checkNames("scopes", m.Scopes); err != nil {
		return err
	}
	if !slices.Contains(Retentions, m.Retention) {
		return &Refusal{"retention is not one of " + strings.Join(Retentions, ", ")}
	}
	if !slices.Contains(Reversibilities, m.Reversibility) {
		return &Refusal{"reversibility is not one of " + strings.Join(Reversibilities, ", ")}
	}
	return nil
}

// stored is the stored form of a manifest.
type stored struct {
	envelope Envelope
	level    Level
	remote   remote
	issued   time.Time
}

// remote is the stored state of an agent that is registered elsewhere.
type remote int

const (
	local     remote = iota // registered here
	pinned                  // known by its manifest
	suspended               // pinned, but not trusted until it is resumed
)

var errNoManifest = errors.New("the agent has no manifest")

func (s *Service) storedManifest(ctx context.Context, agent string) (st stored, err error) {
	var raw string
	var issued int64
	err = s.opts.Database.QueryRow(ctx, `SELECT envelope, level, remote, issued FROM manifest WHERE agent = ?`,
		[]any{agent}, &raw, &st.level, &st.remote, &issued)
	if errors.Is(err, sql.ErrNoRows) {
		return st, errNoManifest
	}
	if err != nil {
		return st, err
	}
	st.issued = time.Unix(issued, 0).UTC()
	if strictjson.UnmarshalOpen([]byte(raw), &st.envelope) != nil {
		st.envelope = Envelope{} // it verifies with no key
	}
	return st, nil
}

// SetManifest signs and stores a manifest of a registered agent. level is the operator's level, by
// default that of the agent's type.
func (s *Service) SetManifest(ctx context.Context, m Manifest, level Level, by string) error {
	if err := m.Check(); err != nil {
		return err
	}
	if level != "" && !slices.Contains(Levels, level) {
		return &Refusal{fmt.Sprintf("there is no trust level %q", level)}
	}
	a, err := s.registered(ctx, m.Agent)
	if err != nil {
		return err
	}
	if level == "" {
		level = levelOf(a.Type)
	}
	if err := s.record(ctx, by, fmt.Sprintf("agent %s: manifest of trust level %s, scopes %s", m.Agent, level,
		strings.Join(m.Scopes, " "))); err != nil {
		return err
	}
	_, err = s.keepManifest(ctx, m, level)
	return err
}

func (s *Service) keepManifest(ctx context.Context, m Manifest, level Level) (stored, error) {
	key, private, err := s.signingKey(ctx, m.Agent)
	if err != nil {
		return stored{}, err
	}
	now := s.now()
	m.Scopes = append([]string{}, m.Scopes...)
	m.Issued, m.Expires, m.Version = now.Format(time.RFC3339), key.Expires.Format(time.RFC3339), Version
	payload, err := canon.Marshal(m)
	if err != nil {
		return stored{}, err
	}
	st := stored{envelope: seal(typeManifest, payload, key, private), level: level, issued: now}
	return st, s.opts.Database.Update(ctx, func(tx database.Tx) error { return st.put(ctx, tx, m.Agent) })
}

func (st stored) put(ctx context.Context, tx database.Tx, agent string) error {
	raw, err := json.Marshal(st.envelope)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO manifest VALUES (?, ?, ?, ?, ?) ON CONFLICT (agent) DO UPDATE
		SET envelope = excluded.envelope, level = excluded.level, remote = excluded.remote, issued = excluded.issued`,
		agent, string(raw), st.level, st.remote, st.issued.Unix())
	return err
}

// manifest returns the verified manifest of a known agent. A registered agent without one gets a
// manifest based on its registration, which claims nothing.
func (s *Service) manifest(ctx context.Context, agent string, registered *agents.Agent) (Manifest, stored, error) {
	st, err := s.storedManifest(ctx, agent)
	if errors.Is(err, errNoManifest) && registered != nil && registered.Status == agents.Active {
		st, err = s.keepManifest(ctx, Manifest{Agent: agent, Retention: "permanent", Reversibility: "none"},
			levelOf(registered.Type))
	}
	if err != nil {
		return Manifest{}, st, err
	}
	keys, err := s.Keys(ctx, agent)
	if err != nil {
		return Manifest{}, st, err
	}
	m, err := readManifest(st.envelope, agent, keys, s.now())
	return m, st, err
}

// readManifest verifies an envelope and parses the manifest of an agent in it.
func readManifest(e Envelope, agent string, keys []Key, now time.Time) (Manifest, error) {
	key, err := e.verify(typeManifest, keys)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if strictjson.UnmarshalOpen(e.Payload, &m) != nil || m.Agent != agent || m.Version != Version || m.Check() != nil {
		return m, ErrForged
	}
	issued, err1 := time.Parse(time.RFC3339, m.Issued)
	expires, err2 := time.Parse(time.RFC3339, m.Expires)
	switch {
	case err1 != nil || err2 != nil || !key.valid(issued, now):
		return m, ErrForged
	case !now.Before(expires), issued.After(now.Add(clockSkew)):
		return m, ErrExpired
	}
	return m, nil
}

// Pinned contains an agent's signed manifest with its keys, as published by its operator. It makes
// a remote agent known.
type Pinned struct {
	Manifest Envelope `json:"manifest"`
	Keys     []JWK    `json:"keys"`
}

// Pin makes a remote agent known, at the operator's level, and returns its ID. The keys of the
// first pin are kept: a later manifest must be signed by one of them and be newer.
func (s *Service) Pin(ctx context.Context, p Pinned, level Level, by string) (string, error) {
	var claimed struct {
		Agent string `json:"agent_id"`
	}
	if err := strictjson.UnmarshalOpen(p.Manifest.Payload, &claimed); err != nil ||
		checkNames("agent_id", []string{claimed.Agent}) != nil || claimed.Agent == "." || claimed.Agent == ".." {
		return "", &Refusal{"the manifest names no agent"}
	}
	if !slices.Contains(Levels, level) {
		return "", &Refusal{fmt.Sprintf("there is no trust level %q", level)}
	}
	agent := claimed.Agent
	if _, err := s.opts.Agents.Find(ctx, agent); !errors.Is(err, agents.ErrUnknown) {
		return "", errors.Join(err, &Refusal{"an agent of that ID is registered here, and signs its manifest here"})
	}
	before, err := s.storedManifest(ctx, agent)
	isNew := errors.Is(err, errNoManifest)
	if err != nil && !isNew {
		return "", err
	}
	keys, err := s.Keys(ctx, agent)
	if isNew {
		keys, err = readKeys(agent, p.Keys)
	}
	if err != nil {
		return "", err
	}
	m, err := readManifest(p.Manifest, agent, keys, s.now())
	if err != nil {
		return "", err
	}
	issued, _ := time.Parse(time.RFC3339, m.Issued) // parsed before by readManifest
	if !isNew && !issued.After(before.issued) {
		return "", ErrReplayed
	}
	if err := s.record(ctx, by, fmt.Sprintf("agent %s pinned with trust level %s", agent, level)); err != nil {
		return "", err
	}
	return agent, s.opts.Database.Update(ctx, func(tx database.Tx) error {
		for _, key := range keys {
			if !isNew {
				break
			}
			if err := key.insert(ctx, tx); err != nil {
				return &Refusal{fmt.Sprintf("the key %q belongs to another agent", key.ID)}
			}
		}
		return stored{p.Manifest, level, pinned, issued}.pin(ctx, tx, agent, isNew)
	})
}

// pin stores a remote agent's manifest. An agent that is pinned already stays suspended if it is, and
// keeps a manifest that is as new: the state is that of the transaction.
func (st stored) pin(ctx context.Context, tx database.Tx, agent string, isNew bool) error {
	raw, err := json.Marshal(st.envelope)
	if err != nil {
		return err
	}
	query := `UPDATE manifest SET envelope = ?, level = ?, issued = ?
		WHERE agent = ? AND remote > 0 AND issued < ?`
	args := []any{string(raw), st.level, st.issued.Unix(), agent, st.issued.Unix()}
	if isNew {
		query = `INSERT INTO manifest VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
		args = []any{agent, string(raw), st.level, st.remote, st.issued.Unix()}
	}
	changed, err := database.Changed(ctx, tx, query, args...)
	if err == nil && !changed {
		err = &Refusal{"the agent was pinned or unpinned at the same time: look at it and try again"}
	}
	return err
}

// maxKeys is the maximum number of keys of a remote agent.
const maxKeys = 16

func readKeys(agent string, list []JWK) ([]Key, error) {
	if len(list) == 0 || len(list) > maxKeys {
		return nil, &Refusal{fmt.Sprintf("there are %d keys: an agent has 1 to %d", len(list), maxKeys)}
	}
	var keys []Key
	for _, jwk := range list {
		public, err := base64.RawURLEncoding.DecodeString(jwk.X)
		if err != nil || jwk.KeyType != "OKP" || jwk.Curve != "Ed25519" || len(public) != ed25519.PublicKeySize {
			return nil, &Refusal{"a key is not an Ed25519 key in the form of RFC 8037"}
		}
		if jwk.Agent != "" && jwk.Agent != agent {
			return nil, &Refusal{"a key is another agent's"}
		}
		if jwk.NotBefore < 0 || jwk.Expires <= jwk.NotBefore {
			return nil, &Refusal{"a key does not say from when to when it is valid (nbf, exp)"}
		}
		key := Key{ID: thumbprint(public), Agent: agent, Public: public, Created: time.Unix(jwk.NotBefore, 0).UTC(),
			Expires: time.Unix(jwk.Expires, 0).UTC()}
		if jwk.KeyID != key.ID {
			return nil, &Refusal{"a key's kid is not its thumbprint (RFC 7638)"}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Offer returns the manifest and keys of a registered agent, for another operator to pin.
func (s *Service) Offer(ctx context.Context, agent string) (Pinned, error) {
	a, err := s.registered(ctx, agent)
	if err != nil {
		return Pinned{}, err
	}
	if _, _, err := s.manifest(ctx, agent, &a); err != nil {
		return Pinned{}, err
	}
	return s.kept(ctx, agent)
}

// PublishedManifest is Offer for unauthenticated callers: it only returns a manifest that the
// agent's operator has made.
func (s *Service) PublishedManifest(ctx context.Context, agent string) (Pinned, error) {
	if _, err := s.registered(ctx, agent); err != nil {
		return Pinned{}, err
	}
	return s.kept(ctx, agent)
}

// kept returns the stored manifest with the keys.
func (s *Service) kept(ctx context.Context, agent string) (Pinned, error) {
	st, err := s.storedManifest(ctx, agent)
	if err != nil {
		return Pinned{}, err
	}
	keys, err := s.Published(ctx, agent, "", maxKeys)
	p := Pinned{Manifest: st.envelope}
	for _, key := range keys {
		p.Keys = append(p.Keys, key.JWK())
	}
	return p, err
}
