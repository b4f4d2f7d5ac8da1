package upstream

import (
	"context"
	"log/slog"
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
		s.end()
		if s.settled(time.Now()) {
			t.Error("got settled, want closed")
		}
	})
}

// However often a server announces a change, its list is read a bounded number of
// times, and after the last announcement once more.
func TestAnnouncementsAreCoalesced(t *testing.T) {
	tests := []struct {
		name   string
		every  time.Duration
		times  int
		atMost int
	}{
		{"a thousand in a second", time.Millisecond, 1000, 3},
		{"every second for ten minutes", time.Second, 600, 5 + 600/6},
		{"once", time.Second, 1, 1},
		{"four changes, far apart", time.Minute, 4, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(Config{ID: "x"}, Options{Refresh: 24 * time.Hour, Logger: slog.New(slog.DiscardHandler)},
					nil, nil)
				var reads []time.Time
				s.reread = func(context.Context) error { reads = append(reads, time.Now()); return nil }
				s.running.Go(s.keep)
				var last time.Time
				for range test.times {
					last = time.Now()
					signal(s.announced)
					time.Sleep(test.every)
				}
				time.Sleep(time.Minute)
				s.close()
				if len(reads) == 0 || len(reads) > test.atMost {
					t.Errorf("got the list read %d times, want 1 to %d", len(reads), test.atMost)
				}
				if n := len(reads); n > 0 && !reads[n-1].After(last) {
					t.Errorf("got the last announcement at %s, and the list read last at %s", last, reads[n-1])
				}
			})
		})
	}
}
