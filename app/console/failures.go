package console

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// failures counts sign-ins that failed, by the network that they came from. Tokens cannot be guessed;
// the limit only bounds the load of attempts.
type failures struct {
	now   func() time.Time
	limit quota.Limit
	of    *quota.Table[string, *rate.Limiter]
}

func newFailures(now func() time.Time) *failures {
	return &failures{now, quota.For(quota.Failures), quota.NewTable[string, *rate.Limiter](quota.For(quota.Rates))}
}

// tooMany reports whether sign-ins from an address are refused for now.
func (f *failures) tooMany(remote string) bool {
	limiter, known := f.of.Get(caller.Network(remote))
	return known && limiter.TokensAt(f.now()) < 1
}

// add counts a failed sign-in from an address.
func (f *failures) add(remote string) {
	network := caller.Network(remote)
	limiter, done, known := f.of.Use(network)
	if !known {
		limiter = rate.NewLimiter(rate.Limit(f.limit.Rate), f.limit.Burst)
		done, _, _ = f.of.Add(network, network, limiter) // an error means that all entries are in use for a moment
	}
	defer done()
	limiter.AllowN(f.now(), 1)
}
