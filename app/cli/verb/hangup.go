package verb

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Hangup handles SIGHUP: the verb reloads if it can, otherwise it ends.
type hangup struct {
	signals chan os.Signal
	done    sync.WaitGroup

	mu     sync.Mutex
	reload func() // if nil, the verb ends
}

// OnHangup returns a context that SIGHUP cancels unless h has a reload function. The caller must
// call stop.
func OnHangup(ctx context.Context) (_ context.Context, h *hangup, stop func()) {
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

// Reloads makes SIGHUP call reload. If reload is nil, SIGHUP ends the verb again. When reloads
// returns, no call of the earlier function is in progress.
func (h *hangup) Reloads(reload func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reload = reload
}
