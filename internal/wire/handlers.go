package wire

import "sync"

// handlers are the goroutines that handle the requests of one connection, as many as there were
// requests at a time. They are kept for the next request: the stack of a new one has to grow, step
// by step, each time.
type handlers struct {
	do      func(*openRequest)
	next    chan *openRequest // to one that has nothing to do
	running sync.WaitGroup
}

func newHandlers(do func(*openRequest)) *handlers {
	return &handlers{do: do, next: make(chan *openRequest)}
}

// handle hands a request to one that has nothing to do, or to a new one. The caller bounds how many
// requests are handled at a time.
func (h *handlers) handle(one *openRequest) {
	select {
	case h.next <- one:
	default:
		h.running.Go(func() {
			h.do(one)
			for one := range h.next {
				h.do(one)
			}
		})
	}
}

// close waits until all that was handed over is handled. No more may come.
func (h *handlers) close() {
	close(h.next)
	h.running.Wait()
}
