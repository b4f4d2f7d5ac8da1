// Package budget keeps a durable ledger of costs and request counts for agents, principals and
// sessions, and refuses requests that would exceed a limit. Hours and days are in UTC. A debit
// stays in its hour and day even if the clock is changed.
package budget

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Schema creates the ledger's tables.
const Schema = `
CREATE TABLE budget_limit (
	account TEXT PRIMARY KEY,
	limits  TEXT NOT NULL -- JSON of Limits
) STRICT;
CREATE TABLE budget_usage (
	account  TEXT NOT NULL,
	span     INTEGER NOT NULL, -- seconds: 3600 or 86400
	start    INTEGER NOT NULL, -- seconds since 1970, a multiple of span
	cost     INTEGER NOT NULL, -- billionths of a US dollar
	requests INTEGER NOT NULL,
	tokens   INTEGER NOT NULL,
	PRIMARY KEY (account, span, start)
) STRICT, WITHOUT ROWID;`

// The time spans of limits, and the number of past spans with debits that are kept.
const (
	hour, day           = time.Hour, 24 * time.Hour
	hoursKept, daysKept = 7 * 24, 400
	// Sessions are numerous and short-lived, so the total number of their lines is limited. This is
	// checked at intervals.
	sessionsKept, sessionsPruned = 20_000, 1_000
)

// Limits are the limits of one account. A limit of zero allows nothing; nil means no limit.
type Limits struct {
	DayCost       *Amount `json:"max_daily_cost_usd,omitempty"`
	HourRequests  *int64  `json:"max_requests_per_hour,omitempty"`
	DayRequests   *int64  `json:"max_requests_per_day,omitempty"`
	RequestCost   *Amount `json:"max_per_request_cost_usd,omitempty"`
	RequestTokens *int64  `json:"max_tokens_per_request,omitempty"`
}

// Check returns an error that names the first limit below zero.
func (l Limits) Check() error {
	for name, n := range map[string]*int64{
		"max_requests_per_hour": l.HourRequests, "max_requests_per_day": l.DayRequests, "max_tokens_per_request": l.RequestTokens,
	} {
		if n != nil && *n < 0 {
			return fmt.Errorf("budget.%s is below zero", name)
		}
	}
	return nil
}

// Charge is the cost of one request.
type Charge struct {
	Cost   Amount
	Tokens int64
}

// Spent is the usage of an account in one time span.
type Spent struct {
	Cost     Amount    `json:"cost_usd"`
	Requests int64     `json:"requests"`
	Tokens   int64     `json:"tokens"`
	Ends     time.Time `json:"ends"` // end of the span, UTC
}

// Standing is the state of an account: its limits and its usage.
type Standing struct {
	Account string `json:"account"`
	Limits  Limits `json:"limits"`
	Hour    Spent  `json:"hour"`
	Day     Spent  `json:"day"`
}

// Ledger keeps accounts in a database with the tables of Schema. Its methods are safe for
// concurrent use, each with a separate Tx.
type Ledger struct {
	now      func() time.Time
	defaults map[string]Limits // by kind of account
	sessions atomic.Int64      // number of session accounts opened by this process

	mu     sync.Mutex
	newest map[line]int64 // the start of the newest span of each line debited by this process
}

// The kinds of accounts with many instances. An account's name is its kind, a colon and its owner;
// that of an agent is the agent's ID alone.
const (
	Principal = "principal"
	Session   = "session"
)

// New returns a ledger with the given clock; nil means time.Now. An account without separate limits
// has the limits of its kind in defaults, which may be nil.
func New(now func() time.Time, defaults map[string]Limits) *Ledger {
	if now == nil {
		now = time.Now
	}
	return &Ledger{now: now, defaults: defaults}
}

// HasDefault reports whether accounts of a kind have default limits.
func (l *Ledger) HasDefault(kind string) bool { return l.defaults[kind] != Limits{} }

// SetLimits sets the limits of an account. Its usage is not reset.
func (l *Ledger) SetLimits(ctx context.Context, tx database.Tx, account string, limits Limits) error {
	if err := limits.Check(); err != nil {
		return err
	}
	raw, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO budget_limit VALUES (?, ?)
		ON CONFLICT (account) DO UPDATE SET limits = excluded.limits`, account, string(raw))
	return wrap("setting the limits of", account, err)
}

// Charge debits a request to all the accounts or to none. If it would exceed a limit, the error is
// an *Exceeded for the first such account.
func (l *Ledger) Charge(ctx context.Context, tx database.Tx, accounts []string, c Charge) error {
	if err := l.Check(ctx, tx, accounts, c); err != nil {
		return err
	}
	return l.Record(ctx, tx, accounts, c)
}

// Check is like Charge but debits nothing.
func (l *Ledger) Check(ctx context.Context, tx database.Tx, accounts []string, c Charge) error {
	if c.Cost < 0 || c.Cost > MaxAmount || c.Tokens < 0 {
		return fmt.Errorf("charging %s dollars and %d tokens: an amount is out of range", c.Cost, c.Tokens)
	}
	for _, account := range accounts {
		s, err := l.Standing(ctx, tx, account)
		if err != nil {
			return err
		}
		if exceeded := s.exceeded(c); exceeded != nil {
			return exceeded
		}
	}
	return nil
}

// CheckCost is like Check for a part of a request that was debited before: only its cost is
// compared with the limits.
func (l *Ledger) CheckCost(ctx context.Context, tx database.Tx, accounts []string, cost Amount) error {
	if cost < 0 || cost > MaxAmount {
		return fmt.Errorf("charging %s dollars: the amount is out of range", cost)
	}
	for _, account := range accounts {
		s, err := l.Standing(ctx, tx, account)
		if err != nil {
			return err
		}
		s.Limits.HourRequests, s.Limits.DayRequests = nil, nil
		if exceeded := s.exceeded(Charge{Cost: cost}); exceeded != nil {
			return exceeded
		}
	}
	return nil
}

// Record debits a request regardless of the limits, because it has already happened.
func (l *Ledger) Record(ctx context.Context, tx database.Tx, accounts []string, c Charge) error {
	return l.addAll(ctx, tx, accounts, entry{Charge: c, requests: 1, at: l.now()})
}

// Adjust debits a cost regardless of the limits, or refunds it if it is negative, for a request
// that was debited at the time at. It changes the hour and the day of that time.
func (l *Ledger) Adjust(ctx context.Context, tx database.Tx, accounts []string, cost Amount, at time.Time) error {
	return l.addAll(ctx, tx, accounts, entry{Charge: Charge{Cost: cost}, at: at})
}

// entry is the increment of one line of the ledger.
type entry struct {
	Charge
	requests int64
	at       time.Time
}

// addAll debits all accounts with one statement, because it is executed for each decision.
func (l *Ledger) addAll(ctx context.Context, tx database.Tx, accounts []string, e entry) error {
	if len(accounts) == 0 {
		return nil
	}
	var values strings.Builder
	var args []any
	for _, account := range accounts {
		for _, span := range []time.Duration{hour, day} {
			if values.Len() > 0 {
				values.WriteString(", ")
			}
			values.WriteString("(?, ?, ?, ?, ?, ?)")
			args = append(args, account, int64(span.Seconds()), e.at.UTC().Truncate(span).Unix(), int64(e.Cost), e.requests, e.Tokens)
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO budget_usage VALUES `+values.String()+`
		ON CONFLICT DO UPDATE SET cost = cost + excluded.cost, requests = requests + excluded.requests, tokens = tokens + excluded.tokens`, args...)
	for i := 0; i < len(args) && err == nil; i += 6 {
		begun := line{args[i].(string), args[i+1].(int64)}
		if l.begins(begun, args[i+2].(int64)) {
			err = l.prune(ctx, tx, begun)
		}
	}
	return wrap("debiting", accounts[0], err)
}

// line identifies an account and the length of its spans.
type line struct {
	account string
	seconds int64
}

// maxLines is the maximum number of cached lines.
const maxLines = 16 << 10

// begins reports whether a span may be the first that is debited since a line was pruned. Unneeded
// pruning is harmless.
func (l *Ledger) begins(one line, start int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest[one] == start {
		return false
	}
	if l.newest == nil || len(l.newest) >= maxLines {
		l.newest = map[line]int64{}
	}
	l.newest[one] = start
	return true
}

// prune removes the oldest lines of an account that has a new one.
func (l *Ledger) prune(ctx context.Context, tx database.Tx, begun line) error {
	kept := int64(hoursKept)
	if begun.seconds == int64(day.Seconds()) {
		kept = daysKept
	}
	if strings.HasPrefix(begun.account, Session+":") && l.sessions.Add(1)%sessionsPruned == 0 {
		if _, err := tx.ExecContext(ctx, `DELETE FROM budget_usage WHERE account >= 'session:' AND account < 'session;' AND start <
			(SELECT start FROM budget_usage WHERE account >= 'session:' AND account < 'session;' ORDER BY start DESC LIMIT 1 OFFSET ?)`, sessionsKept); err != nil {
			return err
		}
	}
	// By number, not by age: a clock that jumps ahead must not remove expenses that count when it jumps back.
	_, err := tx.ExecContext(ctx, `DELETE FROM budget_usage WHERE account = ?1 AND span = ?2 AND start <
		(SELECT start FROM budget_usage WHERE account = ?1 AND span = ?2 ORDER BY start DESC LIMIT 1 OFFSET ?3)`, begun.account, begun.seconds, kept-1)
	return err
}

// Standing returns the state of an account. An unknown account has spent nothing and has no limit.
func (l *Ledger) Standing(ctx context.Context, tx database.Tx, account string) (Standing, error) {
	now := l.now().UTC()
	hours, days := now.Truncate(hour), now.Truncate(day)
	s := Standing{Account: account, Hour: Spent{Ends: hours.Add(hour)}, Day: Spent{Ends: days.Add(day)}}
	var limits sql.NullString
	// One statement, because it is executed for each account of each decision.
	err := tx.QueryRowContext(ctx, `SELECT (SELECT limits FROM budget_limit WHERE account = ?1),
			coalesce(h.cost, 0), coalesce(h.requests, 0), coalesce(h.tokens, 0), coalesce(d.cost, 0), coalesce(d.requests, 0), coalesce(d.tokens, 0)
		FROM (SELECT 1) LEFT JOIN budget_usage h ON h.account = ?1 AND h.span = ?2 AND h.start = ?3
			LEFT JOIN budget_usage d ON d.account = ?1 AND d.span = ?4 AND d.start = ?5`,
		account, int64(hour.Seconds()), hours.Unix(), int64(day.Seconds()), days.Unix()).
		Scan(&limits, &s.Hour.Cost, &s.Hour.Requests, &s.Hour.Tokens, &s.Day.Cost, &s.Day.Requests, &s.Day.Tokens)
	switch {
	case err != nil:
	case limits.Valid:
		err = strictjson.UnmarshalOpen([]byte(limits.String), &s.Limits)
	default:
		if kind, _, named := strings.Cut(account, ":"); named {
			s.Limits = l.defaults[kind]
		}
	}
	return s, wrap("reading how the budget stands of", account, err)
}

// Accounts returns the names of all accounts that have a limit or were debited, in order.
func (l *Ledger) Accounts(ctx context.Context, tx database.Tx) ([]string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT account FROM budget_limit UNION SELECT account FROM budget_usage ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("listing the accounts of the ledger: %w", err)
	}
	defer rows.Close()
	var accounts []string
	for rows.Next() {
		var account string
		if err := rows.Scan(&account); err != nil {
			return nil, err
		}
		accounts = append(accounts, account)
	}
	return accounts, rows.Err()
}

func wrap(doing, account string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s account %q: %w", doing, account, err)
}
