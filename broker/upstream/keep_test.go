package upstream

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRefreshAfter(t *testing.T) {
	tests := []struct {
		name            string
		ttl, configured time.Duration
		want            time.Duration
	}{
		{"the server says nothing", 0, time.Hour, time.Hour},
		{"the server's list is short-lived", time.Minute, time.Hour, time.Minute},
		{"the server's list would live longer", time.Hour, time.Minute, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(Config{ID: "x"}, Options{Refresh: test.configured}, nil, nil)
			s.ttl = test.ttl
			if got := s.refreshAfterLocked(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A burst of announcements is one change, and an endless one is not waited for.
func TestSettled(t *testing.T) {
	tests := []struct {
		name     string
		announce int // announcements, 50 ms apart
		want     time.Duration
	}{
		{"a single one", 0, settle},
		{"a burst", 4, 4*50*time.Millisecond + settle},
		{"without end", 1000, maxSettle},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(Config{ID: "x"}, Options{}, nil, nil)
				start := time.Now()
				go func() {
					tick := time.NewTicker(50 * time.Millisecond)
					defer tick.Stop()
					for range test.announce {
						select {
						case <-tick.C:
							signal(s.announced)
						case <-t.Context().Done():
							return
						}
					}
				}()
				if !s.settled(start) {
					t.Fatal("got closed, want settled")
				}
				if got := time.Since(start); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
	t.Run("closed meanwhile", func(t *testing.T) {
		s := newServer(Config{ID: "x"}, Options{}, nil, nil)
		close(s.done)
		if s.settled(time.Now()) {
			t.Error("got settled, want closed")
		}
	})
}
