package upstream

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// lineWriter writes lines to a server's stdin. Waiting lines are written together. The callers
// write them as long as the pipe accepts data, and run does while a server does not read.
type lineWriter struct {
	pipe   *os.File
	closed <-chan struct{} // when nothing is to be written any more
	failed func()          // called when a write has failed; may be called again
	rest   chan batch      // to run
	alone  func() bool     // reports that no other caller can be about to write; nil: never

	mu      sync.Mutex // guards both below
	waiting []*outgoingLine
	writing bool // a caller, or run, writes what waits
}

// outgoingLine is a line on its way, its newline included.
type outgoingLine struct {
	text    []byte
	written chan<- wrote // buffered
}

// wrote is the result of writing a line. Unless it was sent, the server cannot have seen it.
type wrote struct {
	sent bool
	err  error
}

// batch is lines of which the first n bytes are in the pipe.
type batch struct {
	lines []*outgoingLine
	text  []byte
	n     int
}

func newLineWriter(pipe *os.File, closed <-chan struct{}, failed func()) *lineWriter {
	return &lineWriter{pipe: pipe, closed: closed, failed: failed, rest: make(chan batch)}
}

// write returns when the line is in the pipe, or will not be. A server that does
// not read its stdin blocks the caller no longer than until ctx ends.
func (w *lineWriter) write(ctx context.Context, text []byte) (sent bool, err error) {
	written := make(chan wrote, 1)
	line := &outgoingLine{text, written}
	w.mu.Lock()
	w.waiting = append(w.waiting, line)
	mine := !w.writing
	w.writing = true
	w.mu.Unlock()
	if mine {
		if w.alone == nil || !w.alone() { // yielding wakes a thread, which is useless without other goroutines
			runtime.Gosched() // others that are about to write share the write
		}
		w.flush()
	}
	select {
	case got := <-written:
		return got.sent, got.err
	case <-ctx.Done():
		return !w.withdraw(line), ctx.Err()
	}
}

// withdraw takes back a line whose writing has not begun.
func (w *lineWriter) withdraw(line *outgoingLine) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.waiting, line)
	if at < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, at, at+1)
	return true
}

// flush writes until nothing waits, and leaves what the pipe has no room for to run.
func (w *lineWriter) flush() {
	for {
		b := w.take()
		if b.lines == nil {
			return
		}
		err := w.try(&b)
		if err != nil || b.n == len(b.text) {
			w.done(b, err)
			continue
		}
		select {
		case w.rest <- b:
			return // run goes on with what comes meanwhile
		case <-w.closed:
			w.done(b, io.ErrClosedPipe)
		}
	}
}

// run writes what the callers could not, until nothing is to be written any more.
func (w *lineWriter) run() {
	for {
		select {
		case b := <-w.rest:
			n, err := w.pipe.Write(b.text[b.n:])
			b.n += n
			w.done(b, err)
			w.flushMore()
		case <-w.closed:
			return
		}
	}
}

// flushMore is flush for run itself, which cannot hand over to itself.
func (w *lineWriter) flushMore() {
	for b := w.take(); b.lines != nil; b = w.take() {
		n, err := w.pipe.Write(b.text)
		b.n = n
		w.done(b, err)
	}
}

// take returns what waits. When there is nothing, the next line is for its caller to write.
func (w *lineWriter) take() batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := batch{lines: w.waiting}
	w.waiting = nil
	w.writing = len(b.lines) > 0
	if len(b.lines) == 1 {
		b.text = b.lines[0].text
		return b
	}
	for _, line := range b.lines {
		b.text = append(b.text, line.text...)
	}
	return b
}

// try writes as much as the pipe accepts.
func (w *lineWriter) try(b *batch) error {
	raw, err := w.pipe.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for b.n < len(b.text) {
			n, err := syscall.Write(int(fd), b.text[b.n:])
			switch {
			case err == nil:
				b.n += n
			case errors.Is(err, syscall.EAGAIN):
				return true
			case !errors.Is(err, syscall.EINTR):
				failed = os.NewSyscallError("write", err)
				return true
			}
		}
		return true
	})
	if err != nil { // it is closed: nothing was tried
		return io.ErrClosedPipe
	}
	return failed
}

// done passes the results to the callers. A pipe that is closed or has no reader has accepted
// only the first n bytes.
func (w *lineWriter) done(b batch, err error) {
	if err != nil {
		w.failed()
	}
	refused := errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
	begin := 0
	for _, line := range b.lines {
		line.written <- wrote{sent: begin < b.n || !refused, err: err}
		begin += len(line.text)
	}
}
