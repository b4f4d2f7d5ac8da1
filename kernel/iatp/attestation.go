package iatp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of attestations.
const (
	attestationLife = time.Hour // how long an attestation is accepted
	clockSkew       = time.Minute
	// MaxContent is the maximum number of bytes signed at once.
	MaxContent      = 8 << 20
	maxMetadata     = 64 << 10
	maxCapabilities = 100
	maxName         = 200 // bytes of a capability or scope
)

var (
	// ErrExpired is returned for an attestation that has expired or is not valid yet.
	ErrExpired = errors.New("the attestation has expired")
	// ErrReplayed is returned for an attestation that was accepted before.
	ErrReplayed = errors.New("the attestation was used before")
)

// Statement is the payload of an attestation's envelope. All members are signed.
type Statement struct {
	Agent        string          `json:"agent_id"`
	Capabilities []string        `json:"capabilities"`
	ContentHash  string          `json:"content_hash"` // SHA-256 of the content in hexadecimal digits
	Metadata     json.RawMessage `json:"metadata"`     // an object
	Timestamp    string          `json:"timestamp"`    // RFC 3339, UTC
	Expires      string          `json:"expires"`      // likewise
	Nonce        string          `json:"nonce"`        // 128 random bits
	Version      string          `json:"protocol_version"`
}

// Attestation is a signed statement with its envelope.
type Attestation struct {
	Signature string `json:"signature"` // of the envelope, in hexadecimal digits
	Statement
	KeyID    string   `json:"key_id"`
	Envelope Envelope `json:"envelope"`
}

// Content is the content that an agent signs.
type Content struct {
	Text         string
	Capabilities []string
	Metadata     json.RawMessage // an object; empty means none
}

func (c *Content) check() error {
	if len(c.Text) > MaxContent {
		return &Refusal{fmt.Sprintf("the content has %d bytes, and %d can be signed", len(c.Text), MaxContent)}
	}
	if err := checkNames("capabilities", c.Capabilities); err != nil {
		return err
	}
	if len(c.Metadata) == 0 {
		c.Metadata = json.RawMessage("{}")
	}
	if len(c.Metadata) > maxMetadata {
		return &Refusal{fmt.Sprintf("the metadata have %d bytes, and %d can be signed", len(c.Metadata), maxMetadata)}
	}
	canonical, err := canon.Exact(c.Metadata)
	if err != nil {
		return &Refusal{"the metadata: " + err.Error()}
	}
	if canonical[0] != '{' {
		return &Refusal{"the metadata are not a JSON object"}
	}
	c.Metadata = canonical
	return nil
}

func checkNames(field string, names []string) error {
	if len(names) > maxCapabilities {
		return &Refusal{fmt.Sprintf("%s has %d entries, and %d are allowed", field, len(names), maxCapabilities)}
	}
	for _, name := range names {
		if name == "" || len(name) > maxName || bytes.ContainsFunc(
			[]byte(name), func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
			return &Refusal{fmt.Sprintf("%s: each has 1 to %d bytes and no control characters", field, maxName)}
		}
	}
	return nil
}

// registered returns an active registered agent, or a *Refusal.
func (s *Service) registered(ctx context.Context, agent string) (agents.Agent, error) {
	a, err := s.opts.Agents.Find(ctx, agent)
	switch {
	case errors.Is(err, agents.ErrUnknown):
		return a, &Refusal{"there is no registered agent of that ID"}
	case err != nil:
		return a, err
	case a.Status != agents.Active:
		return a, &Refusal{fmt.Sprintf("the agent is %s", a.Status)}
	}
	return a, nil
}

// Sign signs content in the name of a registered agent. The caller must check that the request
// comes from the agent or its operator. The error is a *Refusal, or the reason why nothing was
// signed.
func (s *Service) Sign(ctx context.Context, agent string, c Content) (Attestation, error) {
	if err := c.check(); err != nil {
		return Attestation{}, err
	}
	if _, err := s.registered(ctx, agent); err != nil {
		return Attestation{}, err
	}
	key, private, err := s.signingKey(ctx, agent)
	if err != nil {
		return Attestation{}, err
	}
	now, digest := s.now(), sha256.Sum256([]byte(c.Text))
	a := Attestation{KeyID: key.ID, Statement: Statement{
		Agent: agent, Capabilities: append([]string{}, c.Capabilities...), ContentHash: hex.EncodeToString(digest[:]),
		Metadata:  c.Metadata,
		Timestamp: now.Format(time.RFC3339), Expires: now.Add(attestationLife).Format(time.RFC3339), Nonce: rand.Text(),
		Version: Version,
	}}
	payload, err := canon.Marshal(a.Statement)
	if err != nil {
		return Attestation{}, err
	}
	a.Envelope = seal(typeAttestation, payload, key, private)
	a.Signature = hex.EncodeToString(a.Envelope.Signatures[0].Sig)
	return a, nil
}

// Accept verifies an attestation of an agent and marks it as used: a second time it is refused. The
// error is ErrForged, ErrExpired, ErrReplayed, or a failure of the lookup.
func (s *Service) Accept(ctx context.Context, agent string, e Envelope) (Statement, error) {
	st, err := s.examine(ctx, agent, e)
	if err != nil {
		return Statement{}, err
	}
	now := s.now()
	expires, _ := time.Parse(time.RFC3339, st.Expires) // parsed before by examine
	err = s.opts.Database.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM attestation WHERE expires < ?`,
			now.Add(-clockSkew).Unix()); err != nil {
			return err
		}
		isNew, err := database.Changed(ctx, tx, `INSERT INTO attestation VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			agent, st.Nonce, expires.Unix())
		if err == nil && !isNew {
			err = ErrReplayed
		}
		return err
	})
	if err != nil {
		return Statement{}, err
	}
	return st, nil
}

// examine is like Accept, but does not mark the attestation as used.
func (s *Service) examine(ctx context.Context, agent string, e Envelope) (Statement, error) {
	keys, err := s.Keys(ctx, agent)
	if err != nil {
		return Statement{}, err
	}
	key, err := e.verify(typeAttestation, keys)
	if err != nil {
		return Statement{}, err
	}
	var st Statement
	if strictjson.UnmarshalOpen(e.Payload, &st) != nil || st.Agent != agent || st.Version != Version ||
		st.Nonce == "" || len(st.Nonce) > maxName {
		return st, ErrForged
	}
	issued, err1 := time.Parse(time.RFC3339, st.Timestamp)
	expires, err2 := time.Parse(time.RFC3339, st.Expires)
	now := s.now()
	switch {
	case err1 != nil || err2 != nil || !key.valid(issued, now):
		return st, ErrForged
	case !now.Before(expires), issued.After(now.Add(clockSkew)), expires.Sub(issued) > attestationLife:
		return st, ErrExpired
	}
	return st, nil
}
