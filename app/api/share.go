package api

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// What one principal may ask the engines, and all of them together. More is answered
// "later", before its body is read.
const (
	verifyRate     = 50 // a second
	verifyBurst    = 100
	verifyAtOnce   = 8
	verifyTogether = 64
	maxRemembered  = 10_000 // principals whose rate is remembered
)

// share bounds what principals ask. The zero value is ready.
type share struct {
	mu       sync.Mutex
	together int
	of       map[string]*using
}

// using is what one principal does now, and did.
type using struct {
	now  int
	rate *rate.Limiter
}

// begin takes the place of one request, which done gives back.
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

// forgetLocked forgets principals that ask for nothing now, where too many are
// remembered: those whose rate is unused first, and then any.
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
