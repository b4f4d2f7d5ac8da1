// Package share bounds how much of something each caller may hold at one time, so that
// one of them cannot take all that there is for everyone.
package share

import "sync"

// Shares are what holders have now. Its methods may be called concurrently. Only names
// that hold something are remembered, so the memory is bounded by what bounds the whole.
type Shares struct {
	most int64

	mu   sync.Mutex
	held map[string]int64 // never 0
}

// New returns shares of at most most each.
func New(most int64) *Shares { return &Shares{most: most, held: map[string]int64{}} }

// Take has name hold n more until release is called; calling that twice is fine. It
// reports false, and takes nothing, where name would hold more than its share. What is
// no more than the share can always be had by a name that holds nothing.
func (s *Shares) Take(name string, n int64) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-s.held[name] {
		return nil, false
	}
	if n > 0 {
		s.held[name] += n
	}
	return sync.OnceFunc(func() { s.release(name, n) }), true
}

func (s *Shares) release(name string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[name] -= n; s.held[name] <= 0 {
		delete(s.held, name)
	}
}
