package verb

import (
	"fmt"
	"sync"
	"time"
)

// progressDelay is the time after which progress shows its message.
const progressDelay = 300 * time.Millisecond

// Progress shows a message on the terminal while a slow operation is in progress, until done is
// called. Without a terminal it shows nothing.
func Progress(s *Streams, what string) (done func()) {
	return StartProgress(s, func() string { return what }).Stop
}

// ProgressLine is a line on the terminal that shows what a slow operation does. A nil ProgressLine shows nothing. Its
// methods are safe for concurrent use.
type ProgressLine struct {
	streams *Streams
	text    func() string
	began   time.Time
	stop    func()
	stopped chan struct{}

	mu     sync.Mutex // guards the following fields
	hidden int        // calls of Hide without Show
	shown  bool
}

// StartProgress shows the line after a short time, and updates it each second until Stop is called. It returns nil if
// stderr is not a terminal.
func StartProgress(s *Streams, text func() string) *ProgressLine {
	if !IsTerminal(s.Err) {
		return nil
	}
	stop := make(chan struct{})
	l := &ProgressLine{streams: s, text: text, began: time.Now(), stopped: make(chan struct{}),
		stop: sync.OnceFunc(func() { close(stop) })}
	go func() {
		defer close(l.stopped)
		wait := time.NewTimer(progressDelay)
		defer wait.Stop()
		for {
			select {
			case <-stop:
				l.Hide()
				return
			case <-wait.C:
				l.draw()
				wait.Reset(time.Second)
			}
		}
	}()
	return l
}

func (l *ProgressLine) draw() {
	text := fmt.Sprintf("%s … %d s", l.text(), int(time.Since(l.began).Seconds()))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hidden == 0 {
		l.shown = true
		fmt.Fprintf(l.streams.Err, "\r\x1b[K%s", OneLine(text, Width(l.streams.Err)-1))
	}
}

// Hide removes the line from the terminal, so that other text can be written, until Show is called as often.
func (l *ProgressLine) Hide() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden++
	if l.shown {
		l.shown = false
		fmt.Fprint(l.streams.Err, "\r\x1b[K")
	}
}

// Show lets the line appear again with its next update.
func (l *ProgressLine) Show() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden--
}

// Stop removes the line for good. It may be called more than once.
func (l *ProgressLine) Stop() {
	if l == nil {
		return
	}
	l.stop()
	<-l.stopped
}
