package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bucket is a token bucket for one rate. It is safe for concurrent use.
type Bucket struct{ limiter *rate.Limiter }

// NewBucket returns a full bucket.
func NewBucket(r Rate) Bucket { return Bucket{rate.NewLimiter(tokensPerSecond(r), r.Calls)} }

func tokensPerSecond(r Rate) rate.Limit { return rate.Limit(float64(r.Calls) / r.Per.Seconds()) }

// has reports whether the bucket was made for a rate.
func (b Bucket) has(r Rate) bool {
	return b.limiter != nil && b.limiter.Limit() == tokensPerSecond(r) && b.limiter.Burst() == r.Calls
}

// MaxRateWait is the longest time that a call waits for a rate. A call that would have to wait longer
// is refused.
const MaxRateWait = time.Second

// Take uses one token. The caller must not proceed before wait has passed, which is at most
// MaxRateWait. If the token comes later, ok is false, no token is used, and wait is the time until
// then, rounded up so that a retry after it is not too early.
func (b Bucket) Take(now time.Time) (wait time.Duration, ok bool) {
	reservation := b.limiter.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait <= MaxRateWait {
		return wait, true
	}
	reservation.CancelAt(now)
	return RetryAfter(wait), false
}

// RetryAfter rounds a wait up, so that a retry after it is not too early.
func RetryAfter(wait time.Duration) time.Duration {
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// Pause returns after wait has passed, or as soon as done is closed. A nil done is never closed.
func Pause(wait time.Duration, done <-chan struct{}) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

// CallRates counts calls against the rates of servers and tools. It is safe for concurrent use.
type CallRates interface {
	// Take is Bucket.Take for the bucket of a key. A changed rate gets a new bucket.
	Take(ctx context.Context, key string, of Rate, now time.Time) (wait time.Duration, ok bool)
}

// Buckets holds token buckets by key, in memory. The zero value is ready to use.
type Buckets struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]Bucket
}

var _ CallRates = (*Buckets)(nil)

// Take implements CallRates.
func (b *Buckets) Take(_ context.Context, key string, of Rate, now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.byKey[key].has(of) {
		if b.byKey == nil {
			b.byKey = map[string]Bucket{}
		}
		b.byKey[key] = NewBucket(of)
	}
	return b.byKey[key].Take(now)
}
