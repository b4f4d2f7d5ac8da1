package admission

import (
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

// Take uses one token and returns 0, or it returns the time until the next token, rounded up so that
// a retry after it is not too early.
func (b Bucket) Take(now time.Time) time.Duration {
	reservation := b.limiter.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// buckets holds token buckets by key. The zero value is ready to use. It is safe for concurrent use.
type buckets struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]Bucket
}

// take is Bucket.Take for the bucket of a key. A changed rate gets a new bucket.
func (b *buckets) take(key string, of Rate, now time.Time) time.Duration {
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
