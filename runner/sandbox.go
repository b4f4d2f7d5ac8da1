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
	process  Process
	listener *net.UnixListener
	streams  streams
	meter    meter

	greeting chan greeting // receives the guest's greeting once
	goOnce   sync.Once
	goErr    error

	gone      chan struct{} // closed when the process has ended
	closeOnce sync.Once
	closeErr  error
	onClose   *cleanup.Stack // runs last first, after the process is gone
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
	mu     sync.Mutex
	usage  Usage         // as of Close
	before time.Duration // of processor time, when Go was called
}

// newSandbox wraps a started process. A fresh guest sends a greeting and a ready line.
func newSandbox(id string, process Process, listener *net.UnixListener, limits Limits, fresh bool) *Sandbox {
	s := &Sandbox{
		machine: machine{id: id, now: starting}, process: process, listener: listener,
		streams: streams{limit: limits.Output, flooded: make(chan struct{})}, gone: make(chan struct{}),
		greeting: make(chan greeting, 1),
	}
	s.streams.stdout = newCollector(limits.Stdout, s.counter(limits.Stream))
	s.streams.stderr = newCollector(limits.Stderr, s.counter(limits.Stream))
	go s.streams.stderr.drain(process.Stderr())
	go func() {
		if fresh {
			text, err := readGreeting(process.Stdout())
			s.greeting <- greeting{text, err}
		}
		s.streams.stdout.drain(process.Stdout())
	}()
	go func() {
		defer close(s.gone)
		// Wait returns how it ended.
		_, _ = process.Wait(context.Background())
	}()
	return s
}

// ended reports whether the process is over.
func (s *Sandbox) ended() bool {
	select {
	case <-s.gone:
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

// Go declares that the sandbox is in use now: the server of its listener
// answers the guest's question for code. It may be called once.
func (s *Sandbox) Go() error {
	if err := s.machine.to(running, "run"); err != nil {
		return err
	}
	s.meter.mu.Lock() // so that Usage waits for the answer
	go func() {
		defer s.meter.mu.Unlock()
		s.meter.before = s.process.Usage().CPU
	}()
	s.tell(nowLine)
	return s.goErr
}

// tell writes the line that the guest waits for, once. It returns no error: Go reports
// a failure, and the guest's exit status explains it better.
func (s *Sandbox) tell(line string) {
	s.goOnce.Do(func() {
		stdin := s.process.Stdin()
		_, err := io.WriteString(stdin, line)
		if err := errors.Join(err, stdin.Close()); err != nil {
			s.goErr = fmt.Errorf("telling sandbox %q to run: %w", s.ID(), err)
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
	if through, ok := s.process.(Flusher); ok {
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
		case <-stream.done:
		case <-ctx.Done():
			return fmt.Errorf("reading the output of sandbox %q: %w", s.ID(), ctx.Err())
		}
	}
	return nil
}

// Wait blocks until the guest program has ended. It may be called many times.
// An error other than the context's means that the sandbox itself failed.
func (s *Sandbox) Wait(ctx context.Context) (Exit, error) {
	exit, err := s.process.Wait(ctx)
	if err != nil {
		return Exit{}, fmt.Errorf("waiting for sandbox %q: %w", s.ID(), err)
	}
	return exit, nil
}

// LimitMet returns a limit that the code has reached so far, if the driver can detect it.
// The guest's own report of its end may only be a consequence of that limit.
func (s *Sandbox) LimitMet() Reason {
	if reporter, ok := s.process.(LimitReporter); ok {
		return reporter.LimitMet()
	}
	return ReasonNone
}

// Kill ends every process of the sandbox at once. Calling it twice is fine.
func (s *Sandbox) Kill() error {
	if s.machine.is(closed) {
		return nil
	}
	if err := s.process.Kill(); err != nil {
		return fmt.Errorf("killing sandbox %q: %w", s.ID(), err)
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
	if !s.machine.is(closed) {
		s.meter.usage = s.process.Usage()
		s.meter.usage.CPU = max(s.meter.usage.CPU-s.meter.before, 0)
	}
	return s.meter.usage
}

// Close kills what still runs and removes everything that belongs to the
// sandbox. Calling it twice is fine and returns the same.
func (s *Sandbox) Close() error {
	s.closeOnce.Do(func() {
		s.Usage()
		err := s.process.Close()
		<-s.gone
		<-s.streams.stderr.done
		<-s.streams.stdout.done
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
		// A failure shows when the owner kills or closes the sandbox.
		_ = s.process.Kill()
	})
}
