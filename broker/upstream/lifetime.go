package upstream

import "context"

// lifetime is the time during which a server is used. All work for the server ends with it.
// No goroutine waits for the end: each call would start one, and Go's runtime would wake a
// thread for it.
type lifetime struct {
	done <-chan struct{}    // closed at the end
	end  context.CancelFunc // ends it, and all contexts within
	then func(f func()) (stop func() bool)
}

func newLifetime() lifetime {
	used, end := context.WithCancel(context.Background())
	return lifetime{used.Done(), end, func(f func()) func() bool { return context.AfterFunc(used, f) }}
}

// within returns a context that ends with the lifetime, too. The cancel function must be called.
func (l *lifetime) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := l.then(cancel)
	select {
	case <-l.done: // a context that begins behind the end is over already
		cancel()
	default:
	}
	return ctx, func() {
		stop()
		cancel()
	}
}
