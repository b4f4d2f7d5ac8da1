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

// bucket is one rate's account. The zero value is full.
type bucket struct {
	spent float64 // tokens that are missing
	at    time.Time
}

// take uses one token of the key's bucket. It returns 0, or how long until
// there is a token.
func (r *rates) take(key string, rate Rate, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buckets == nil {
		r.buckets = map[string]bucket{}
	}
	b := r.buckets[key]
	wait := b.take(rate, now)
	r.buckets[key] = b
	return wait
}

// take uses one token, or returns how long until there is one.
func (b *bucket) take(rate Rate, now time.Time) time.Duration {
	perToken := float64(rate.Per) / float64(rate.Calls)
	if passed := now.Sub(b.at); passed > 0 {
		b.spent = max(0, b.spent-float64(passed)/perToken)
		b.at = now
	}
	if missing := b.spent + 1 - float64(rate.Calls); missing > 0 {
		return time.Duration(missing * perToken)
	}
	b.spent++
	return 0
}
