package broker

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates holds token buckets by key. The zero value is ready to use. It is safe for concurrent use.
type rates struct {
	mu       sync.Mutex // guards limiters
	limiters map[string]*rate.Limiter
}

// newLimiter returns a full token bucket.
func newLimiter(r Rate) *rate.Limiter {
	return rate.NewLimiter(tokensPerSecond(r), r.Calls)
}

func tokensPerSecond(r Rate) rate.Limit { return rate.Limit(float64(r.Calls) / r.Per.Seconds()) }

// takeToken uses one token of the key's bucket. It returns 0, or the time until the next token.
func (r *rates) takeToken(key string, of Rate, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limiters == nil {
		r.limiters = map[string]*rate.Limiter{}
	}
	limiter := r.limiters[key]
	if limiter == nil || limiter.Limit() != tokensPerSecond(of) || limiter.Burst() != of.Calls { // a changed rate gets a new bucket
		limiter = newLimiter(of)
		r.limiters[key] = limiter
	}
	return takeToken(limiter, now)
}

// takeToken uses one token, or returns the time until the next one.
func takeToken(limiter *rate.Limiter, now time.Time) time.Duration {
	reservation := limiter.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}
