package api

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Limits of the questions to engines, for one principal and for all. Requests beyond the limits
// are refused with Retry-After, before their body is read.
const (
	verifyRate     = 50 // a second
	verifyBurst    = 100
	verifyAtOnce   = 8
	verifyTogether = 64
	maxRemembered  = 10_000 // principals whose rate is remembered
)

// share enforces the limits of questions. The zero value is ready to use.
type share struct {
	mu       sync.Mutex
	together int
	of       map[string]*using
}

// using is the number of concurrent questions of a principal, and its rate.
type using struct {
	now  int
	rate *rate.Limiter
}

// begin reserves one request for a caller. The caller of begin must call done.
func (s *share) begin(who caller.Caller) (done func(), _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := string(who.Kind) + " " + who.Name()
	mine := s.of[name]
	if mine == nil {
		s.forgetLocked()
		mine = &using{rate: rate.NewLimiter(verifyRate, verifyBurst)}
		s.of[name] = mine
	}
	switch {
	case mine.now >= verifyAtOnce:
		return nil, &refusal{http.StatusTooManyRequests, "rate_limited", "too many verifications of this caller are under way: wait for one", 1}
	case s.together >= verifyTogether:
		return nil, &refusal{http.StatusServiceUnavailable, "busy", "too many verifications are under way: send it again", 1}
	case !mine.rate.Allow():
		return nil, &refusal{http.StatusTooManyRequests, "rate_limited", "this caller asks too often: send it again", 1}
	}
	mine.now++
	s.together++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		mine.now--
		s.together--
	}, nil
}

// forgetLocked evicts principals without current questions if there are maxRemembered: first
// those whose rate is unused, then any.
func (s *share) forgetLocked() {
	if s.of == nil {
		s.of = map[string]*using{}
	}
	for _, unused := range []bool{true, false} {
		for name, other := range s.of {
			if len(s.of) < maxRemembered {
				return
			}
			if other.now == 0 && (!unused || other.rate.Tokens() >= verifyBurst) {
				delete(s.of, name)
			}
		}
	}
}
