package wire

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Every request is handled once, before the goroutines end, also those at one moment, and by handlers
// that have handled others.
func TestHandlers(t *testing.T) {
	const waves, atOnce = 50, 20
	var handled [waves * atOnce]atomic.Int32
	var wave sync.WaitGroup
	var running sync.WaitGroup
	h := newHandlers(&running, func(one *openRequest) { one.over() })
	for n := range waves {
		wave.Add(atOnce)
		together := make(chan struct{})
		for i := range atOnce {
			h.handle(&openRequest{over: func() {
				if i%2 == 0 {
					<-together // so that the next ones need separate handlers
				}
				handled[n*atOnce+i].Add(1)
				wave.Done()
			}})
		}
		close(together)
		wave.Wait()
	}
	last := false
	h.handle(&openRequest{over: func() { last = true }})
	h.close()
	running.Wait()
	if !last {
		t.Error("the last request was not handled")
	}
	for i := range handled {
		if got := handled[i].Load(); got != 1 {
			t.Fatalf("request %d was handled %d times", i, got)
		}
	}
}
