// Package budget keeps a durable ledger of costs and request counts for agents, principals and
// sessions, and refuses requests that would exceed a limit. Hours and days are in UTC. A debit
// stays in its hour and day even if the clock is changed.
package budget

import (
	"cmp"
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

// SchemaDays adds the index that lists of accounts and reports of days are read by.
const SchemaDays = `
CREATE INDEX budget_day ON budget_usage (start, account) WHERE span = 86400;`

// SchemaDebits adds the records of debits and refunds that may be missing in the audit log.
const SchemaDebits = `
CREATE TABLE budget_debit (
	id      TEXT PRIMARY KEY,
	process TEXT NOT NULL, -- procfs.Name of the process that made it
	record  TEXT NOT NULL  -- JSON of the record
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
		"max_requests_per_hour": l.HourRequests, "max_requests_per_day": l.DayRequests,
		"max_tokens_per_request": l.RequestTokens,
	} {
		if n != nil && *n < 0 {
			return fmt.Errorf("budget.%s is below zero", name)
		}
	}
	return nil
}

// With returns the limits, each replaced by the one of other that is not nil.
func (l Limits) With(other Limits) Limits {
	l.DayCost = cmp.Or(other.DayCost, l.DayCost)
	l.HourRequests = cmp.Or(other.HourRequests, l.HourRequests)
	l.DayRequests = cmp.Or(other.DayRequests, l.DayRequests)
	l.RequestCost = cmp.Or(other.RequestCost, l.RequestCost)
	l.RequestTokens = cmp.Or(other.RequestTokens, l.RequestTokens)
	return l
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

// The kinds of accounts with many instances. An account's name is its kind, a colon and its owner.
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
	return l.addAll(ctx, tx, accounts, entry{increment{c, 1}, l.now()})
}

// Adjust debits a cost regardless of the limits, or refunds it if it is negative, for a request
// that was debited at the time at. It changes the hour and the day of that time.
func (l *Ledger) Adjust(ctx context.Context, tx database.Tx, accounts []string, cost Amount, at time.Time) error {
	return l.addAll(ctx, tx, accounts, entry{increment{Charge: Charge{Cost: cost}}, at})
}

// entry is one debit or refund.
type entry struct {
	increment
	at time.Time
}

// addAll debits all accounts.
func (l *Ledger) addAll(ctx context.Context, tx database.Tx, accounts []string, e entry) error {
	if len(accounts) == 0 {
		return nil
	}
	added := make(usage, 2*len(accounts))
	for _, account := range accounts {
		for _, span := range []time.Duration{hour, day} {
			row := usageRow{line{account, int64(span.Seconds())}, e.at.UTC().Truncate(span).Unix()}
			added[row] = added[row].plus(e.increment)
		}
	}
	err := database.Later(ctx, tx, added)
	if err == nil {
		remember(database.MemoOf(tx), accounts, e)
	}
	for row := range added {
		if err == nil && l.begins(row.line, row.start) {
			err = l.prune(ctx, tx, row.line)
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
	memo, now := database.MemoOf(tx), l.now().UTC()
	if known, ok := memo.Get(memoKey(account)).(Standing); ok && known.isAt(now) {
		return known, nil
	}
	// One statement, because it is executed for each account of each decision.
	s, err := l.scan(tx.QueryRowContext(ctx, standingColumns+`FROM (SELECT ?3 AS account) a`+standingJoins,
		l.spans(account)...))
	if err == nil && s.isAt(now) {
		memo.Put(memoKey(account), s)
	}
	return s, wrap("reading how the budget stands of", account, err)
}

// memoKey is the key of a Standing in the database's memo.
type memoKey string

// isAt reports whether a time is in both spans.
func (s Standing) isAt(now time.Time) bool { return s.Hour.has(now, hour) && s.Day.has(now, day) }

// has reports whether a time is in the span, which has a length.
func (s Spent) has(at time.Time, length time.Duration) bool {
	return s.Ends.Equal(at.UTC().Truncate(length).Add(length))
}

// remember adds an entry to the standings that are kept of accounts.
func remember(memo *database.Memo, accounts []string, e entry) {
	for _, account := range accounts {
		s, ok := memo.Get(memoKey(account)).(Standing)
		if !ok {
			continue
		}
		if s.Hour.has(e.at, hour) {
			s.Hour.add(e)
		}
		if s.Day.has(e.at, day) {
			s.Day.add(e)
		}
		memo.Put(memoKey(account), s)
	}
}

func (s *Spent) add(e entry) {
	s.Cost, s.Requests, s.Tokens = s.Cost+e.Cost, s.Requests+e.requests, s.Tokens+e.Tokens
}

// The columns of a Standing, and where they come from. The parameters are those of spans, and a
// lists the accounts. The lengths of the spans are not parameters: if they were, SQLite would compile
// the statement at each execution, because its plan depends on them (the index budget_day is partial).
const (
	standingColumns = `SELECT a.account, b.limits, coalesce(h.cost, 0), coalesce(h.requests, 0), coalesce(h.tokens, 0),
		coalesce(d.cost, 0), coalesce(d.requests, 0), coalesce(d.tokens, 0) `
	standingJoins = ` LEFT JOIN budget_limit b ON b.account = a.account
		LEFT JOIN budget_usage h ON h.account = a.account AND h.span = 3600 AND h.start = ?1
		LEFT JOIN budget_usage d ON d.account = a.account AND d.span = 86400 AND d.start = ?2 `
)

// spans returns the current hour and day as parameters of a statement, and more parameters.
func (l *Ledger) spans(more ...any) []any {
	now := l.now().UTC()
	return append([]any{now.Truncate(hour).Unix(), now.Truncate(day).Unix()}, more...)
}

// scan reads a row of standingColumns.
func (l *Ledger) scan(row interface{ Scan(...any) error }) (Standing, error) {
	now := l.now().UTC()
	s := Standing{Hour: Spent{Ends: now.Truncate(hour).Add(hour)}, Day: Spent{Ends: now.Truncate(day).Add(day)}}
	var limits sql.NullString
	err := row.Scan(&s.Account, &limits, &s.Hour.Cost, &s.Hour.Requests, &s.Hour.Tokens, &s.Day.Cost, &s.Day.Requests,
		&s.Day.Tokens)
	switch {
	case err != nil:
	case limits.Valid:
		err = strictjson.UnmarshalOpen([]byte(limits.String), &s.Limits)
	default:
		if kind, _, named := strings.Cut(s.Account, ":"); named {
			s.Limits = l.defaults[kind]
		}
	}
	return s, err
}

// List returns at most n accounts whose names begin with prefix, ordered by name and starting after
// the name after: those that have a limit or were debited today.
func (l *Ledger) List(ctx context.Context, tx database.Tx, prefix, after string, n int) ([]Standing, error) {
	return l.standings(ctx, tx, standingColumns+`FROM (
		SELECT account FROM (SELECT account FROM budget_limit WHERE account > ?3 AND account < ?4 ORDER BY 1 LIMIT ?5) l
		UNION SELECT account FROM (SELECT account FROM budget_usage
			WHERE span = 86400 AND start = ?2 AND account > ?3 AND account < ?4 ORDER BY 1 LIMIT ?5) u
		ORDER BY 1 LIMIT ?5) a`+standingJoins+`ORDER BY 1`, l.spans(max(prefix, after), prefix+"\U0010ffff", n))
}

// Busiest returns at most n accounts that were debited today and whose names sort before a name,
// those with the highest costs first.
func (l *Ledger) Busiest(ctx context.Context, tx database.Tx, before string, n int) ([]Standing, error) {
	return l.standings(ctx, tx, standingColumns+`FROM (SELECT account FROM budget_usage
		WHERE span = 86400 AND start = ?2 AND account < ?3 ORDER BY cost DESC, requests DESC LIMIT ?4) a`+standingJoins,
		l.spans(before, n))
}

// Of returns the state of accounts, in their order.
func (l *Ledger) Of(ctx context.Context, tx database.Tx, accounts []string) ([]Standing, error) {
	names, err := json.Marshal(append([]string{}, accounts...)) // not null, which json_each reads as one element
	if err != nil {
		return nil, err
	}
	return l.standings(ctx, tx, standingColumns+`FROM (SELECT key AS at, value AS account FROM json_each(?3)) a`+
		standingJoins+`ORDER BY a.at`, l.spans(string(names)))
}

func (l *Ledger) standings(ctx context.Context, tx database.Tx, query string, args []any) ([]Standing, error) {
	list, err := database.RowsIn(ctx, tx, query, args, func(rows *sql.Rows) (Standing, error) { return l.scan(rows) })
	if err != nil {
		return nil, fmt.Errorf("listing the accounts of the ledger: %w", err)
	}
	return list, nil
}

// Cost is what an account spent on one day.
type Cost struct {
	Day      string `json:"day"` // in UTC: 2026-11-23
	Account  string `json:"account"`
	Cost     Amount `json:"cost_usd"`
	Requests int64  `json:"requests"`
}

// Costs returns the costs of the days from first up to and including last, ordered by day and
// account: of accounts, or of all accounts whose names begin with prefix if accounts is nil.
func (l *Ledger) Costs(ctx context.Context, tx database.Tx, prefix string, accounts []string, first, last time.Time) (
	costs []Cost, err error) {
	var days []int64
	for at := first.UTC().Truncate(day); !at.After(last); at = at.Add(day) {
		days = append(days, at.Unix())
	}
	rawDays, err := json.Marshal(days)
	if err != nil {
		return nil, err
	}
	// CROSS JOIN makes SQLite search each day and account in an index, and not scan all of them.
	query := `SELECT start, account, cost, requests FROM json_each(?1) d CROSS JOIN budget_usage
		WHERE span = 86400 AND start = CAST(d.value AS BIGINT) AND account > ?2 AND account < ?3 ORDER BY start, account`
	args := []any{string(rawDays), prefix, prefix + "\U0010ffff"}
	if accounts != nil {
		rawAccounts, err := json.Marshal(accounts)
		if err != nil {
			return nil, err
		}
		query = `SELECT start, account, cost, requests FROM json_each(?1) d CROSS JOIN json_each(?4) a
			CROSS JOIN budget_usage WHERE account = a.value AND span = 86400 AND start = CAST(d.value AS BIGINT)
			AND account > ?2 AND account < ?3 ORDER BY start, account`
		args = append(args, string(rawAccounts))
	}
	costs, err = database.RowsIn(ctx, tx, query, args, func(rows *sql.Rows) (c Cost, err error) {
		var start int64
		err = rows.Scan(&start, &c.Account, &c.Cost, &c.Requests)
		c.Day = time.Unix(start, 0).UTC().Format(time.DateOnly)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the costs of the ledger: %w", err)
	}
	return costs, nil
}

func wrap(doing, account string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s account %q: %w", doing, account, err)
}
