package wire

import "sync"

// handlers are the goroutines that handle the requests of one connection, as many as there were
// requests at a time. They are kept for the next request: the stack of a new one has to grow, step
// by step, each time.
type handlers struct {
	do      func(*openRequest)
	next    chan *openRequest // to one that has nothing to do
	running *sync.WaitGroup
}

// newHandlers returns handlers whose goroutines are counted in running.
func newHandlers(running *sync.WaitGroup, do func(*openRequest)) *handlers {
	return &handlers{do: do, next: make(chan *openRequest), running: running}
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

// close ends the goroutines, each when it has handled its request. No more requests may come.
func (h *handlers) close() { close(h.next) }
