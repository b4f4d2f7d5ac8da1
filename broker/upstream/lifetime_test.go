package upstream

import (
	"context"
	"sync"
	"testing"
)

func TestContextsEndWithTheLifetime(t *testing.T) {
	life := newLifetime()
	before, cancel := life.within(t.Context())
	defer cancel()
	if err := before.Err(); err != nil {
		t.Fatalf("got %v before the end, want none", err)
	}
	life.end()
	<-life.done
	<-before.Done() // else the test ends by its time limit
	behind, cancel := life.within(t.Context())
	defer cancel()
	if behind.Err() == nil {
		t.Error("a context begins behind the end")
	}
}

func TestContextsEndBeforeTheLifetime(t *testing.T) {
	life := newLifetime()
	parent, end := context.WithCancel(t.Context())
	child, cancel := life.within(parent)
	end()
	if child.Err() == nil {
		t.Error("a context goes on without its parent")
	}
	cancel()
	cancel() // twice is fine
}

// A context that begins while the lifetime ends is ended by one or the other.
func TestContextsBeginWhileTheLifetimeEnds(t *testing.T) {
	for range 100 {
		life := newLifetime()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				ctx, cancel := life.within(t.Context())
				defer cancel()
				<-ctx.Done()
			})
		}
		life.end()
		all.Wait()
	}
}
