package images

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is the interval of progress lines during a long step.
const heartbeat = 15 * time.Second

// progress prints the progress of a build: one line for each step, with the seconds since the
// start of the build, and further lines during a long step.
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

// step prints the start of a step. Write errors are ignored.
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
