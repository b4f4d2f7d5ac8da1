package iatp

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Score is a number of points in hundredths, so that sums are exact.
type Score int64

// Bounds of scores. A reputation starts in the middle.
const (
	lowest          Score = 0
	highest         Score = 1000
	firstReputation Score = 500
)

// Points returns the score as a number.
func (s Score) Points() float64 { return float64(s) / 100 }

// String returns the score without trailing zeros: 5, 4.75.
func (s Score) String() string { return fmt.Sprint(s.Points()) }

// MarshalJSON writes the score with at least one decimal place, as in the protocol's examples: 5.0,
// 4.75.
func (s Score) MarshalJSON() ([]byte, error) {
	text := s.String()
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return []byte(text), nil
}

// level returns the trust level for a reputation.
func (s Score) level() Level {
	switch {
	case s >= 800:
		return VerifiedPartner
	case s >= 600:
		return Trusted
	case s >= 400:
		return Standard
	case s >= 200:
		return Unknown
	}
	return Untrusted
}

// penalties are the points lost by a slash, by severity.
var penalties = map[string]Score{"critical": 200, "high": 100, "medium": 50, "low": 25}

// Severities are the severities of a slash, from the worst.
var Severities = []string{"critical", "high", "medium", "low"}

// Reputation is an agent's reputation.
type Reputation struct {
	Agent   string `json:"agent_id"`
	Score   Score  `json:"reputation_score"`
	Level   Level  `json:"trust_level"`
	History int    `json:"history_count"`
}

// Penalty is the result of a slash.
type Penalty struct {
	Agent    string `json:"agent_id"`
	Previous Score  `json:"previous_score"`
	New      Score  `json:"new_score"`
	Applied  Score  `json:"penalty_applied"` // less than the severity's if the score would fall below 0
	Reason   string `json:"reason"`
	Severity string `json:"severity"`
	Evidence bool   `json:"evidence_recorded"` // whether evidence was given
}

// Slash is a complaint about an agent.
type Slash struct {
	Agent    string
	Reason   string
	Severity string          // a value of Severities; empty means medium
	Evidence json.RawMessage // an object; can be empty
	By       string          // author of the complaint
}

// Limits of a complaint, in bytes.
const (
	maxReason   = 2 << 10
	maxEvidence = 64 << 10
)

func (sl *Slash) check() error {
	if sl.Severity == "" {
		sl.Severity = "medium"
	}
	switch {
	case strings.TrimSpace(sl.Reason) == "":
		return &Refusal{"slash_reason is required to slash"}
	case len(sl.Reason) > maxReason:
		return &Refusal{fmt.Sprintf("slash_reason is longer than %d bytes", maxReason)}
	case !slices.Contains(Severities, sl.Severity):
		return &Refusal{fmt.Sprintf("slash_severity %q is not one of %s", sl.Severity, strings.Join(Severities, ", "))}
	case len(sl.Evidence) > maxEvidence:
		return &Refusal{fmt.Sprintf("the evidence has more than %d bytes", maxEvidence)}
	case len(sl.Evidence) == 0 || string(sl.Evidence) == "null" || string(sl.Evidence) == "{}":
		sl.Evidence = nil
		return nil
	}
	canonical, err := canon.Exact(sl.Evidence)
	if err != nil {
		return &Refusal{"the evidence: " + err.Error()}
	}
	if canonical[0] != '{' {
		return &Refusal{"the evidence is not a JSON object"}
	}
	sl.Evidence = canonical
	return nil
}

// known reports whether an agent is registered or pinned. registered is nil for a pinned one.
func (s *Service) known(ctx context.Context, agent string) (registered *agents.Agent, known bool, err error) {
	a, err := s.opts.Agents.Find(ctx, agent)
	if err == nil {
		return &a, true, nil
	}
	if !errors.Is(err, agents.ErrUnknown) {
		return nil, false, err
	}
	st, err := s.storedManifest(ctx, agent)
	if errors.Is(err, errNoManifest) || err == nil && st.remote == local {
		return nil, false, nil
	}
	return nil, err == nil, err
}

// standing returns the reputation of an agent and the number of its events, which only lower it.
func standing(ctx context.Context, tx database.Tx, agent string) (score Score, events int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(change), 0) FROM reputation WHERE agent = ?`,
		agent).Scan(&events, &score)
	return reputationAfter(score), events, err
}

// reputationAfter returns the reputation after the sum of all changes.
func reputationAfter(changes Score) Score { return max(firstReputation+changes, lowest) }

// Reputation returns the reputation of a known agent, or a *Refusal.
func (s *Service) Reputation(ctx context.Context, agent string) (Reputation, error) {
	if _, known, err := s.known(ctx, agent); err != nil || !known {
		return Reputation{}, errors.Join(err, unknownAgent(agent))
	}
	r := Reputation{Agent: agent}
	err := s.opts.Database.View(ctx, func(tx database.Tx) (err error) {
		r.Score, r.History, err = standing(ctx, tx, agent)
		return err
	})
	r.Level = r.Score.level()
	return r, err
}

func unknownAgent(agent string) error {
	return &Refusal{fmt.Sprintf("Agent %q is unknown: it is neither registered nor pinned", agent)}
}

// CheckSlash sets the defaults of a complaint and returns the error that Slash would return for it.
func (s *Service) CheckSlash(ctx context.Context, sl *Slash) error {
	if err := sl.check(); err != nil {
		return err
	}
	_, known, err := s.known(ctx, sl.Agent)
	if err == nil && !known {
		err = unknownAgent(sl.Agent)
	}
	return err
}

// Slash lowers the reputation of a known agent. The caller must check the permission to do so. The
// error is a *Refusal, or the reason why nothing was changed.
func (s *Service) Slash(ctx context.Context, sl Slash) (Penalty, error) {
	if err := s.CheckSlash(ctx, &sl); err != nil {
		return Penalty{}, err
	}
	evidence := "with evidence"
	if sl.Evidence == nil {
		evidence = "without evidence"
	}
	if err := s.record(ctx, sl.By, fmt.Sprintf("agent %s slashed (%s) %s", sl.Agent, sl.Severity,
		evidence)); err != nil {
		return Penalty{}, err
	}
	p := Penalty{Agent: sl.Agent, Reason: sl.Reason, Severity: sl.Severity, Evidence: sl.Evidence != nil}
	err := s.opts.Database.Update(ctx, func(tx database.Tx) (err error) {
		if p.Previous, _, err = standing(ctx, tx, sl.Agent); err != nil {
			return err
		}
		p.New = max(p.Previous-penalties[sl.Severity], lowest)
		p.Applied = p.Previous - p.New
		_, err = tx.ExecContext(
			ctx, `INSERT INTO reputation (agent, time, change, severity, reason, evidence, author) VALUES (?, ?, ?, `+
				`?, ?, ?, ?)`,
			sl.Agent, s.now().Unix(), -penalties[sl.Severity], sl.Severity, sl.Reason, string(sl.Evidence), sl.By)
		return err
	})
	return p, err
}

// Event is one entry of a reputation's log.
type Event struct {
	Time     time.Time       `json:"time"`
	Change   Score           `json:"change"`
	Severity string          `json:"severity"`
	Reason   string          `json:"reason"`
	Evidence json.RawMessage `json:"evidence,omitempty"`
	By       string          `json:"by"`
}

// History returns the n newest events of an agent in a period, newest first.
func (s *Service) History(ctx context.Context, agent string, in audit.Period, n int) ([]Event, error) {
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !in.Since.IsZero() {
		since = in.Since.Unix()
	}
	if !in.Until.IsZero() {
		until = in.Until.Unix()
	}
	return database.Rows(ctx, s.opts.Database, `SELECT time, change, severity, reason, evidence, author FROM reputation
		WHERE agent = ? AND time >= ? AND time < ? ORDER BY seq DESC LIMIT ?`, []any{agent, since, until, n},
		func(rows *sql.Rows) (e Event, err error) {
			var at int64
			var evidence string
			err = rows.Scan(&at, &e.Change, &e.Severity, &e.Reason, &evidence, &e.By)
			e.Time = time.Unix(at, 0).UTC()
			if evidence != "" {
				e.Evidence = json.RawMessage(evidence)
			}
			return e, err
		})
}
