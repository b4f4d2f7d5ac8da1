package upstream

import (
	"context"
	"sync"
)

// lifetime is how long a server is used. What is done for the server ends with it. No goroutine waits
// for that: each call would start one, and Go's runtime wakes a thread for it.
type lifetime struct {
	done chan struct{} // closed at the end

	mu      sync.Mutex // guards all below
	over    bool
	cancels map[int]context.CancelFunc // by number
	last    int                        // number
}

func newLifetime() lifetime {
	return lifetime{done: make(chan struct{}), cancels: map[int]context.CancelFunc{}}
}

// within returns a context that ends with the lifetime, too. The cancel function must be called.
func (l *lifetime) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		cancel()
		return ctx, cancel
	}
	l.last++
	number := l.last
	l.cancels[number] = cancel
	return ctx, func() {
		l.forget(number)
		cancel()
	}
}

func (l *lifetime) forget(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.cancels, number)
}

// end ends the lifetime, and with it all contexts. It is called once.
func (l *lifetime) end() {
	close(l.done)
	l.mu.Lock()
	cancels := l.cancels
	l.over, l.cancels = true, nil
	l.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
}
