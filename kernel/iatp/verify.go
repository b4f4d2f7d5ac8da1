package iatp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
)

// required are the levels that a query may require, and the score of each.
var required = map[Level]Score{VerifiedPartner: 1000, Trusted: 700, Standard: 500, "any": 0}

// Classifications are the classes of data, from the least sensitive.
var Classifications = []string{"public", "internal", "confidential", "pii"}

// Query asks whether an agent can be trusted for a purpose.
type Query struct {
	Agent          string
	Level          Level     // verified_partner, trusted, standard or any; empty means standard
	Scopes         []string  // scopes that it must have
	Classification string    // a value of Classifications; empty if no data is involved
	Attestation    *Envelope // presented by the agent; can be nil. It cannot be used again.
}

// Check returns an error for an invalid query.
func (q *Query) Check() error {
	if q.Level == "" {
		q.Level = Standard
	}
	switch {
	case strings.TrimSpace(q.Agent) == "":
		return &Refusal{"remote_agent_id is missing or empty"}
	case len(q.Agent) > maxName:
		return &Refusal{fmt.Sprintf("remote_agent_id is longer than %d bytes", maxName)}
	case !has(required, q.Level):
		return &Refusal{fmt.Sprintf("required_trust_level %q is not one of verified_partner, trusted, standard, any",
			q.Level)}
	case q.Classification != "" && !slices.Contains(Classifications, q.Classification):
		return &Refusal{fmt.Sprintf("data_classification %q is not one of %s", q.Classification,
			strings.Join(Classifications, ", "))}
	}
	return checkNames("required_scopes", q.Scopes)
}

func has[V any](m map[Level]V, key Level) bool {
	_, there := m[key]
	return there
}

// Trust is the answer to a query. Error is set if Verified is false.
type Trust struct {
	Verified         bool     `json:"verified"`
	Agent            string   `json:"remote_agent_id"`
	Score            float64  `json:"trust_score"` // 0 to 10
	Level            Level    `json:"trust_level,omitempty"`
	Scopes           []string `json:"scopes,omitzero"`
	AttestationValid bool     `json:"attestation_valid"`
	PolicyCompatible bool     `json:"policy_compatible"`
	RequiredScore    *float64 `json:"required_score,omitempty"` // of what is not verified
	Error            string   `json:"error,omitempty"`
}

// Verify reports whether an agent can be trusted for a query: it is known and active, has a
// manifest that it signed, reaches the score, has the scopes and may handle the data. The error is
// a *Refusal of the query itself, or a failed lookup, and then no agent is trusted.
func (s *Service) Verify(ctx context.Context, q Query) (Trust, error) {
	if err := q.Check(); err != nil {
		return Trust{}, err
	}
	t := Trust{Agent: q.Agent}
	if err := s.judge(ctx, q, &t); err != nil {
		var no *Refusal
		if !errors.As(err, &no) {
			return Trust{}, err
		}
		needed := required[q.Level].Points()
		t.Verified, t.Error, t.RequiredScore = false, no.Text, &needed
		return t, nil
	}
	t.Verified = true
	return t, nil
}

// judge fills in the answer until a check fails. The error is then a *Refusal.
func (s *Service) judge(ctx context.Context, q Query, t *Trust) error {
	registered, known, err := s.known(ctx, q.Agent)
	if err != nil {
		return err
	}
	if !known {
		return unknownAgent(q.Agent)
	}
	if registered != nil && registered.Status != agents.Active {
		return &Refusal{fmt.Sprintf("Agent is %s", registered.Status)}
	}
	m, st, err := s.manifest(ctx, q.Agent, registered)
	if err != nil {
		return asRefusal(err, "Attestation of the capability manifest")
	}
	t.AttestationValid, t.Level, t.Scopes = true, st.level, m.Scopes
	if st.remote == suspended {
		return &Refusal{"Agent is suspended"}
	}
	if q.Attestation != nil {
		if _, err := s.Accept(ctx, q.Agent, *q.Attestation); err != nil {
			t.AttestationValid = false
			return asRefusal(err, "Attestation")
		}
	}
	reputation, err := s.Reputation(ctx, q.Agent)
	if err != nil {
		return err
	}
	score := m.score(st.level, reputation.Score)
	t.Score = score.Points()
	if needed := required[q.Level]; score < needed {
		return &Refusal{fmt.Sprintf("Trust score %s below required %s", score, needed)}
	}
	return m.allows(q, t)
}

// score returns the score of the level, raised for reversible actions and for data that is not
// kept, and then changed by the reputation. The bonuses cannot hide a penalty.
func (m Manifest) score(level Level, reputation Score) Score {
	score := level.score()
	switch m.Reversibility {
	case "full":
		score += 200
	case "partial":
		score += 100
	}
	if m.Retention == "ephemeral" {
		score += 100
	}
	return min(max(min(score, highest)+reputation-firstReputation, lowest), highest)
}

// allows checks scopes and data.
func (m Manifest) allows(q Query, t *Trust) error {
	var missing []string
	for _, scope := range q.Scopes {
		if !slices.Contains(m.Scopes, scope) {
			missing = append(missing, scope)
		}
	}
	if len(missing) > 0 {
		return &Refusal{"Missing required scopes: " + strings.Join(missing, ", ")}
	}
	switch {
	case q.Classification == "pii" && m.Retention != "ephemeral":
		return &Refusal{fmt.Sprintf("Policy conflict: pii data need ephemeral retention, and the agent's is %s",
			m.Retention)}
	case q.Classification == "confidential" && m.Retention == "permanent":
		return &Refusal{"Policy conflict: confidential data must not be kept, and the agent's retention is permanent"}
	}
	t.PolicyCompatible = true
	return nil
}

// asRefusal converts an error about a signature to a *Refusal; it returns other errors unchanged.
func asRefusal(err error, what string) error {
	switch {
	case errors.Is(err, ErrForged):
		return &Refusal{what + " is not valid: it was not signed with a key of the agent that is in force"}
	case errors.Is(err, ErrExpired):
		return &Refusal{what + " has expired"}
	case errors.Is(err, ErrReplayed):
		return &Refusal{what + " was used before"}
	case errors.Is(err, errNoManifest):
		return &Refusal{"Agent has no capability manifest"}
	}
	return err
}
