package console

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Limits of failed sign-ins. Tokens cannot be guessed; the limits only bound the load of
// attempts.
const (
	failuresPerAddress = 10 // at once; one more each failurePause
	failurePause       = 6 * time.Second
	maxAddresses       = 10_000
)

// failures counts sign-ins that failed, by the network that they came from.
type failures struct {
	now func() time.Time

	mu sync.Mutex // guards the fields below
	of map[string]*rate.Limiter
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, of: map[string]*rate.Limiter{}}
}

// tooMany reports whether sign-ins from an address are refused for now.
func (f *failures) tooMany(remote string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter := f.of[caller.Network(remote)]
	return limiter != nil && limiter.TokensAt(f.now()) < 1
}

// add counts a failed sign-in from an address.
func (f *failures) add(remote string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, name := f.now(), caller.Network(remote)
	limiter := f.of[name]
	if limiter == nil {
		f.forgetLocked(now)
		limiter = rate.NewLimiter(rate.Every(failurePause), failuresPerAddress)
		f.of[name] = limiter
	}
	limiter.AllowN(now, 1)
}

// forgetLocked evicts addresses whose failures are old, and any others if that is not
// enough.
func (f *failures) forgetLocked(now time.Time) {
	for _, unused := range []bool{true, false} {
		for name, limiter := range f.of {
			if len(f.of) < maxAddresses {
				return
			}
			if !unused || limiter.TokensAt(now) >= failuresPerAddress {
				delete(f.of, name)
			}
		}
	}
}
