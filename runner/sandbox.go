package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// Sandbox is one started sandbox, to be used for one run. Methods may be
// called concurrently.
type Sandbox struct {
	machine  machine
	req      Request
	origin   *sharedTemplate // that it was started from, or nil
	when     moment          // it was opened
	listener *relay
	streams  streams
	meter    meter

	greeting chan greeting // receives the guest's greetings: one if it is fresh, one with what its probe found
	sendOnce sync.Once
	sendErr  error

	mu    sync.Mutex
	body  *body         // nil while the sandbox is suspended
	moved chan struct{} // closed and replaced when body has changed
	saved *deposit      // of a suspended sandbox
	ended *Exit         // how a suspended sandbox was ended

	closeOnce sync.Once
	closeErr  error
	onClose   *cleanup.Stack // runs last first, after the process is gone
}

// body is the part of a sandbox that exists while it is not suspended.
type body struct {
	process Process
	gone    chan struct{}        // closed when the process has ended
	base    atomic.Pointer[base] // that its suspended state was the difference to, or nil
	onClose *cleanup.Stack       // runs last first, after the process is gone
}

// close ends the process and removes what belongs to it.
func (b *body) close() error {
	err := b.process.Close()
	<-b.gone
	return errors.Join(err, b.onClose.Run())
}

// greeting is a guest's output before its ready line, or the error of reading it.
type greeting struct {
	text string
	err  error
}

// streams are the outputs of a sandbox's guest.
type streams struct {
	stdout, stderr *collector
	limit          int64        // bytes on both together
	written        atomic.Int64 // bytes on both together
	flooded        chan struct{}
	flood          sync.Once
}

// meter is what a sandbox has consumed.
type meter struct {
	mu      sync.Mutex
	usage   Usage         // in all, as last read
	earlier time.Duration // processor time of processes before the sandbox was last suspended
	before  time.Duration // processor time of the process that does not count: from before Go, or before it continued
}

// read reads what the process has consumed.
func (m *meter) read(process Process) {
	now := process.Usage()
	m.usage.CPU = m.earlier + max(now.CPU-m.before, 0)
	m.usage.PeakMemory = max(m.usage.PeakMemory, now.PeakMemory)
}

// newSandbox returns a sandbox without a body.
func newSandbox(id string, req Request) *Sandbox {
	s := &Sandbox{
		machine: machine{id: id, now: starting}, req: req, listener: newRelay(), moved: make(chan struct{}),
		streams:  streams{limit: req.Limits.Output, flooded: make(chan struct{})},
		greeting: make(chan greeting, 2),
	}
	s.streams.stdout = newCollector(req.Limits.Stdout, s.counter(req.Limits.Stream))
	s.streams.stderr = newCollector(req.Limits.Stderr, s.counter(req.Limits.Stream))
	return s
}

// start gives the sandbox a started process. A fresh guest sends a greeting and a ready line, and so does one with a
// network once it has tried what it must not reach.
func (s *Sandbox) start(process Process, listener *net.UnixListener, onClose *cleanup.Stack, fresh bool) {
	b := &body{process: process, gone: make(chan struct{}), onClose: onClose}
	go s.streams.stderr.drain(process.Stderr(), s.streams.stderr.next())
	stdoutDone := s.streams.stdout.next()
	go func() {
		var err error
		for _, greets := range []bool{fresh, s.req.Network != nil} {
			if greets && err == nil {
				var text string
				text, err = readGreeting(process.Stdout())
				s.greeting <- greeting{text, err}
			}
		}
		s.streams.stdout.drain(process.Stdout(), stdoutDone)
	}()
	go func() {
		defer close(b.gone)
		// Wait returns how it ended.
		_, _ = process.Wait(context.Background())
	}()
	s.listener.replace(listener)
	s.move(b)
}

// move changes the body.
func (s *Sandbox) move(b *body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = b
	close(s.moved)
	s.moved = make(chan struct{})
}

// now returns the body, nil while the sandbox is suspended, and a channel that is closed when that changes.
func (s *Sandbox) now() (*body, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body, s.moved
}

// process returns the process of a sandbox that is not suspended.
func (s *Sandbox) process() (Process, error) {
	b, _ := s.now()
	if b == nil {
		return nil, fmt.Errorf("sandbox %q is suspended", s.ID())
	}
	return b.process, nil
}

// hasEnded reports whether the process is over.
func (s *Sandbox) hasEnded() bool {
	b, _ := s.now()
	if b == nil {
		return false
	}
	select {
	case <-b.gone:
		return true
	default:
		return false
	}
}

// ID is the sandbox's name, unique on this host.
func (s *Sandbox) ID() string { return s.machine.id }

// Listener is the broker's end of the sandbox's socket. Only this sandbox can
// connect there. Close closes it.
func (s *Sandbox) Listener() net.Listener { return s.listener }

// Begin tells the guest to request its code from the server of Listener, and changes the state to
// running. It may be called once.
func (s *Sandbox) Begin() error {
	if err := s.machine.to(running, "run"); err != nil {
		return err
	}
	s.meter.mu.Lock() // so that Usage waits for the answer
	process, err := s.process()
	if err != nil {
		s.meter.mu.Unlock()
		return err
	}
	go func() {
		defer s.meter.mu.Unlock()
		s.meter.before = process.Usage().CPU
	}()
	s.sendLine(nowLine)
	return s.sendErr
}

// sendLine writes the line that the guest waits for, once. It returns no error: Begin
// returns it, and the guest's exit status explains it better.
func (s *Sandbox) sendLine(line string) {
	s.sendOnce.Do(func() {
		process, err := s.process()
		if err != nil {
			s.sendErr = err
			return
		}
		stdin := process.Stdin()
		_, err = io.WriteString(stdin, line)
		if err := errors.Join(err, stdin.Close()); err != nil {
			s.sendErr = fmt.Errorf("telling sandbox %q to run: %w", s.ID(), err)
		}
	})
}

// Stdout is what was kept of the guest's stdout so far, without its ready line.
func (s *Sandbox) Stdout() Output { return s.streams.stdout.output() }

// Stderr is what was kept of the guest's stderr so far.
func (s *Sandbox) Stderr() Output { return s.streams.stderr.output() }

// Flooded is closed when the guest has written more than Limits.Output to
// stdout and stderr together, or more than Limits.Stream to one of them. The
// sandbox is killed then.
func (s *Sandbox) Flooded() <-chan struct{} { return s.streams.flooded }

// flushTimeout bounds a flush through others.
const flushTimeout = 2 * time.Second

// Flush makes Stdout and Stderr hold everything that was written before the
// call, without waiting for the guest to end.
func (s *Sandbox) Flush() {
	process, err := s.process()
	if err != nil {
		return // everything was read when it was suspended
	}
	if through, ok := process.(Flusher); ok {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		// An error means that the sandbox has ended or does not respond. The output
		// available so far is read below.
		_ = through.Flush(ctx)
	}
	s.streams.stdout.flush()
	s.streams.stderr.flush()
}

// Drain waits until everything that was written to stdout and stderr has been
// read, which is soon after the last process inside has ended.
func (s *Sandbox) Drain(ctx context.Context) error {
	for _, stream := range []*collector{s.streams.stdout, s.streams.stderr} {
		select {
		case <-stream.ended():
		case <-ctx.Done():
			return fmt.Errorf("reading the output of sandbox %q: %w", s.ID(), ctx.Err())
		}
	}
	return nil
}

// Wait blocks until the guest program has ended. It may be called many times.
// An error other than the context's means that the sandbox itself failed.
func (s *Sandbox) Wait(ctx context.Context) (Exit, error) {
	for {
		b, moved := s.now()
		if b == nil {
			if exit := s.endedSuspended(); exit != nil {
				return *exit, nil
			}
			select {
			case <-moved:
				continue
			case <-ctx.Done():
				return Exit{}, fmt.Errorf("waiting for sandbox %q: %w", s.ID(), ctx.Err())
			}
		}
		exit, err := b.process.Wait(ctx)
		if now, _ := s.now(); now != b && ctx.Err() == nil {
			continue // it ended because the sandbox was suspended
		}
		if err != nil {
			return Exit{}, fmt.Errorf("waiting for sandbox %q: %w", s.ID(), err)
		}
		return exit, nil
	}
}

// LimitMet returns a limit that the code has reached so far, if the driver can detect it.
// The guest's own report of its end may only be a consequence of that limit.
func (s *Sandbox) LimitMet() Reason {
	process, err := s.process()
	if err != nil {
		return ReasonNone
	}
	if reporter, ok := process.(LimitReporter); ok {
		return reporter.LimitMet()
	}
	return ReasonNone
}

// Kill ends every process of the sandbox at once. Calling it twice is fine.
func (s *Sandbox) Kill() error {
	if s.machine.is(closed) {
		return nil
	}
	if s.endSuspended() {
		return nil
	}
	if process, err := s.process(); err == nil {
		if err := process.Kill(); err != nil {
			return fmt.Errorf("killing sandbox %q: %w", s.ID(), err)
		}
	}
	if err := s.machine.to(stopped, "kill"); err != nil && !s.machine.is(closed) {
		return err
	}
	return nil
}

// Usage returns what the sandbox has consumed so far, or in total after Close. CPU time
// counts from Go, because the time before was not used by the code.
func (s *Sandbox) Usage() Usage {
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	if process, err := s.process(); err == nil && !s.machine.is(closed) {
		s.meter.read(process)
	}
	return s.meter.usage
}

// Close kills what still runs and removes everything that belongs to the
// sandbox. Calling it twice is fine and returns the same.
func (s *Sandbox) Close() error {
	s.closeOnce.Do(func() {
		s.Usage()
		err := s.closeBody()
		if stateErr := s.machine.to(closed, "close"); stateErr != nil {
			err = errors.Join(err, stateErr)
		}
		if err := errors.Join(err, s.onClose.Run()); err != nil {
			s.closeErr = fmt.Errorf("closing sandbox %q: %w", s.ID(), err)
		}
	})
	return s.closeErr
}

// counted is called after every read from the guest's streams. At the limit it kills the
// sandbox; later output is read and discarded.
func (s *Sandbox) counted(n int) bool {
	if s.streams.written.Add(int64(n)) <= s.streams.limit {
		return true
	}
	s.endFlood()
	return false
}

// counter returns a function to call after every read from one stream with a limit in
// bytes; 0 means no separate limit. The read that exceeds the limit is still kept, as far
// as the collector has space, to show that there was more.
func (s *Sandbox) counter(limit int64) func(n int) bool {
	var written int64 // the collector calls it in turn
	return func(n int) bool {
		kept := s.counted(n)
		before := written
		if written += int64(n); limit > 0 && written > limit {
			s.endFlood()
			return kept && before <= limit
		}
		return kept
	}
}

// endFlood ends a sandbox that has written too much.
func (s *Sandbox) endFlood() {
	s.streams.flood.Do(func() {
		close(s.streams.flooded)
		if process, err := s.process(); err == nil {
			// A failure shows when the owner kills or closes the sandbox.
			_ = process.Kill()
		}
	})
}
