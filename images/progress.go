package images

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is how often a step that takes long says that it goes on.
const heartbeat = 15 * time.Second

// progress tells a person how a build goes on: one line for each step, with the
// seconds since the build's start, and one now and then during a long step.
type progress struct {
	name    string
	started time.Time
	done    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	out     io.Writer
	current string
}

// newProgress starts to write to out, which may be nil. The caller calls stop.
func newProgress(out io.Writer, name string) *progress {
	if out == nil {
		out = io.Discard
	}
	p := &progress{name: name, started: time.Now(), out: out, done: make(chan struct{})}
	p.ended.Go(p.beat)
	return p
}

// step tells that a new step begins. A line that cannot be written is lost: the
// build goes on.
func (p *progress) step(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = text
	p.printLocked(text)
}

func (p *progress) printLocked(text string) {
	fmt.Fprintf(p.out, "[%5.1f s] %s: %s\n", time.Since(p.started).Seconds(), p.name, text)
}

func (p *progress) beat() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.printLocked("still " + p.current)
			p.mu.Unlock()
		}
	}
}

// stop ends the lines about long steps.
func (p *progress) stop() {
	close(p.done)
	p.ended.Wait()
}
