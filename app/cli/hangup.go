package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// hangup decides what SIGHUP does: it ends a verb, unless the verb reloads.
type hangup struct {
	signals chan os.Signal
	done    sync.WaitGroup

	mu     sync.Mutex
	reload func() // nil: the verb ends
}

// onHangup returns a context that SIGHUP ends, and who is told instead. The
// caller calls stop.
func onHangup(ctx context.Context) (_ context.Context, h *hangup, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	h = &hangup{signals: make(chan os.Signal, 1)}
	signal.Notify(h.signals, syscall.SIGHUP)
	h.done.Go(func() {
		for range h.signals {
			h.mu.Lock()
			if h.reload != nil {
				h.reload()
			} else {
				cancel()
			}
			h.mu.Unlock()
		}
	})
	return ctx, h, func() {
		signal.Stop(h.signals)
		close(h.signals)
		h.done.Wait()
		cancel()
	}
}

// reloads has SIGHUP call reload from now on; nil lets it end the verb again.
// When it returns, what was called before is over.
func (h *hangup) reloads(reload func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reload = reload
}
