package broker

import (
	"sync"
	"time"
)

// rates are token buckets, one for each key. The zero value is ready; methods
// may be called concurrently.
type rates struct {
	mu      sync.Mutex // guards buckets
	buckets map[string]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// take uses one token of the key's bucket, which fills by perSecond up to
// burst. It returns 0, or how long until there is a token.
func (r *rates) take(key string, perSecond float64, burst int, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buckets == nil {
		r.buckets = map[string]bucket{}
	}
	b, ok := r.buckets[key]
	if !ok {
		b = bucket{tokens: float64(burst), at: now}
	}
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = min(float64(burst), b.tokens+passed*perSecond)
		b.at = now
	}
	var wait time.Duration
	if b.tokens >= 1 {
		b.tokens--
	} else {
		wait = time.Duration((1 - b.tokens) / perSecond * float64(time.Second))
	}
	r.buckets[key] = b
	return wait
}
