// Package quota limits the use of shared resources and shares them fairly between accounts. A
// Limiter counts what is in use, in total and per account, and lets requests wait in turns. A Table
// has a bounded number of entries and evicts the least recently used ones. The account of a caller
// is caller.Caller.Account. The limits themselves are in limits.go.
package quota

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Reason is the part of a limit that refuses a request.
type Reason string

// The reasons.
const (
	OfAccount Reason = "account" // the account uses as much as one account may
	OfAll     Reason = "all"     // all accounts together use as much as they may, and the queue is full
	OfRate    Reason = "rate"    // the account sends requests too often
)

// Refusal is the error for a request that a limit refuses. It can be repeated later.
type Refusal struct {
	Resource Resource
	Reason   Reason
}

// Error returns a sentence for the caller.
func (r *Refusal) Error() string {
	switch r.Reason {
	case OfAccount:
		return "this caller has reached its limit of " + string(r.Resource) + ": wait for one of them to end"
	case OfRate:
		return "this caller sends " + string(r.Resource) + " too often: send it again later"
	}
	return "the limit of " + string(r.Resource) + " for all callers is reached: send it again later"
}

// Count adds the refusal to the metric of refused requests.
func (r *Refusal) Count(ctx context.Context) {
	telemetry.CountRefusal(ctx, string(r.Resource), string(r.Reason))
}

// Limiter enforces one Limit. A free unit goes to the account with the fewest units in use among
// those that wait and are below their own limit. Among equals it goes to the account served least
// recently, and within an account to its first waiter. If the queue is full, a new waiter replaces
// the last waiter of the account with the most waiters, unless that is the new waiter's account. So
// no account can fill the queue for others. Reserved units go only to accounts that have none, so no account can take
// all units for as long as its work lasts. A Limiter is safe for concurrent use.
type Limiter struct {
	limit Limit
	rates *Table[string, *rate.Limiter]

	mu      sync.Mutex        // guards what follows
	of      map[string]*usage // by account; only those with a unit or a waiter
	used    int64             // units in use
	waiting int               // waiters
	turns   int               // counts arrivals and turns, to order them
}

// usage is what one account uses.
type usage struct {
	used    int64
	waiters []*Reservation // in order of arrival
	since   int            // the number of its last turn or, if it had none yet, of its first arrival
}

// Reservation is a number of units in use by an account, or a waiter for one unit. The caller must
// call Release, which may be called more than once.
type Reservation struct {
	limiter *Limiter
	number  int        // of its arrival
	turn    chan error // of a waiter; has one value: nil for a unit, or a *Refusal

	// guarded by limiter.mu
	account string
	units   int64 // 0 for a waiter, and after Release
}

// New returns a limiter.
func New(l Limit) *Limiter {
	return &Limiter{limit: l, of: map[string]*usage{}, rates: NewTable[string, *rate.Limiter](For(Rates))}
}

// Take reserves n units for an account, without waiting. The error is a *Refusal.
func (l *Limiter) Take(account string, n int64) (*Reservation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reason := l.exceededLocked(account, n)
	if reason == "" && l.limit.Rate > 0 && !l.rateOf(account).Allow() {
		reason = OfRate
	}
	if reason != "" {
		return nil, &Refusal{l.limit.Resource, reason}
	}
	r := &Reservation{limiter: l, account: account}
	l.grantLocked(r, n)
	return r, nil
}

// AwaitRate returns when the rate of an account permits a request, without counting one. While it does
// not, callers take turns. The error is that of ctx.
func (l *Limiter) AwaitRate(ctx context.Context, account string) error {
	l.mu.Lock()
	bucket := l.rateOf(account)
	l.mu.Unlock()
	if bucket.Tokens() >= 1 {
		return nil
	}
	return bucket.Wait(ctx)
}

// Charge counts n requests that an account has already made. n may exceed the burst of the limit:
// AwaitRate then waits longer.
func (l *Limiter) Charge(account string, n int64) {
	l.mu.Lock()
	bucket := l.rateOf(account)
	l.mu.Unlock()
	for now := time.Now(); n > 0; n -= int64(l.limit.Burst) {
		bucket.ReserveN(now, int(min(n, int64(l.limit.Burst))))
	}
}

// rateOf returns the token bucket of an account. That of an account that has not sent a request for
// long is full.
func (l *Limiter) rateOf(account string) *rate.Limiter {
	if bucket, done, known := l.rates.Use(account); known {
		done()
		return bucket
	}
	bucket := rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst)
	if done, _, err := l.rates.Add(account, account, bucket); err == nil { // else all entries are in use for a moment
		done()
	}
	return bucket
}

// exceededLocked returns the limit that n more units of an account would exceed.
func (l *Limiter) exceededLocked(account string, n int64) Reason {
	var own int64
	if u := l.of[account]; u != nil {
		own = u.used
	}
	switch {
	case l.limit.Each > 0 && n > l.limit.Each-own:
		return OfAccount
	case l.limit.Total > 0 && (n > l.limit.Total-l.used || own > 0 && n > l.limit.Total-l.limit.Reserved-l.used):
		return OfAll
	}
	return ""
}

// Wait reserves one unit for an account, waiting for its turn if necessary. The error is a
// *Refusal, which can also come later, or the cause of ctx.
func (l *Limiter) Wait(ctx context.Context, account string) (*Reservation, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r, err := l.Join(account)
	if err == nil {
		err = r.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Join adds an account to the queue for one unit. The caller must call Wait before it uses the
// unit. If the queue is full, the error is a *Refusal.
func (l *Limiter) Join(account string) (*Reservation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &Reservation{limiter: l, account: account, turn: make(chan error, 1)}
	if l.exceededLocked(account, 1) == "" { // then no other waiter could have this unit
		l.grantLocked(r, 1)
		return r, nil
	}
	mine := l.usageLocked(account)
	if l.limit.Queue != Unbounded && l.waiting >= l.limit.Queue && !l.displaceLocked(len(mine.waiters)+1) {
		l.forgetLocked(account)
		refused := &Refusal{l.limit.Resource, OfAll}
		refused.Count(context.Background())
		return nil, refused
	}
	l.turns++
	r.number = l.turns
	mine.waiters = append(mine.waiters, r)
	l.waiting++
	return r, nil
}

// Wait waits for the turn of the reservation. If it returns an error, the reservation is released.
func (r *Reservation) Wait(ctx context.Context) error {
	select {
	case err := <-r.turn:
		return err
	case <-ctx.Done():
		r.Release()
		return context.Cause(ctx)
	}
}

// Release returns the units, or leaves the queue. It does nothing for nil.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	l := r.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of[r.account]
	if u == nil {
		return
	}
	if at := slices.Index(u.waiters, r); at >= 0 {
		l.leaveLocked(u, at)
	}
	u.used -= r.units
	l.used -= r.units
	r.units = 0
	l.forgetLocked(r.account)
	l.dispatchLocked()
}

// Move counts the units in use for another account from now on. If that account has reached its
// limit, the error is a *Refusal and nothing changes.
func (r *Reservation) Move(account string) error {
	l := r.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if account == r.account || r.units == 0 {
		return nil
	}
	if l.exceededLocked(account, r.units) == OfAccount {
		return &Refusal{l.limit.Resource, OfAccount}
	}
	l.of[r.account].used -= r.units
	l.forgetLocked(r.account)
	r.account = account
	l.usageLocked(account).used += r.units
	l.dispatchLocked()
	return nil
}

// grantLocked gives n units to a reservation.
func (l *Limiter) grantLocked(r *Reservation, n int64) {
	u := l.usageLocked(r.account)
	l.turns++
	u.since = l.turns
	u.used += n
	l.used += n
	r.units = n
	if r.turn != nil {
		r.turn <- nil
	}
	l.forgetLocked(r.account) // n may be 0
}

// mayGrowLocked reports whether the limits permit an account one more of the free units.
func (l *Limiter) mayGrowLocked(u *usage) bool {
	return (l.limit.Each <= 0 || u.used < l.limit.Each) &&
		(u.used == 0 || l.limit.Total <= 0 || l.used < l.limit.Total-l.limit.Reserved)
}

// dispatchLocked gives free units to waiters.
func (l *Limiter) dispatchLocked() {
	for l.waiting > 0 && (l.limit.Total <= 0 || l.used < l.limit.Total) {
		var next *usage
		for _, u := range l.of {
			if len(u.waiters) > 0 && l.mayGrowLocked(u) && (next == nil || u.before(next)) {
				next = u
			}
		}
		if next == nil {
			return
		}
		r := next.waiters[0]
		l.leaveLocked(next, 0)
		l.grantLocked(r, 1)
	}
}

// displaceLocked refuses a waiter of a full queue if an account has more than n of them.
func (l *Limiter) displaceLocked(n int) bool {
	var from *usage
	for _, u := range l.of {
		has := len(u.waiters)
		if has > n || has == n && from != nil && u.waiters[n-1].number > from.waiters[n-1].number {
			n, from = has, u
		}
	}
	if from == nil {
		return false
	}
	last := from.waiters[n-1]
	l.leaveLocked(from, n-1)
	l.forgetLocked(last.account)
	refused := &Refusal{l.limit.Resource, OfAll}
	refused.Count(context.Background())
	last.turn <- refused
	return true
}

// usageLocked returns what an account uses, and adds the account if necessary.
func (l *Limiter) usageLocked(account string) *usage {
	u := l.of[account]
	if u == nil {
		u = &usage{since: l.turns + 1}
		l.of[account] = u
	}
	return u
}

// leaveLocked removes a waiter from the queue.
func (l *Limiter) leaveLocked(u *usage, at int) {
	u.waiters = slices.Delete(u.waiters, at, at+1)
	l.waiting--
}

// forgetLocked removes an account that uses nothing and does not wait.
func (l *Limiter) forgetLocked(account string) {
	if u := l.of[account]; u != nil && u.used == 0 && len(u.waiters) == 0 {
		delete(l.of, account)
	}
}

// before reports whether the turn of one account comes before that of another. An account that
// arrives, or has a turn, later has a larger since. So no account waits behind others that leave
// and arrive again.
func (u *usage) before(other *usage) bool {
	if u.used != other.used {
		return u.used < other.used
	}
	return u.since < other.since
}

// Load returns the number of units in use and of waiters.
func (l *Limiter) Load() (used, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.used), l.waiting
}
