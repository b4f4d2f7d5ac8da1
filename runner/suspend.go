package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Saved is a suspended sandbox whose state outlives the process, as data for Restore.
type Saved struct {
	State  string // name of the file with the state, in Options.SuspendDir
	Key    string // decrypts the state; a secret
	Format string // of the state: another driver, or another version of it, cannot load it
	// Base is the template that State is the difference to; nil if it is the whole state.
	Base   *SavedBase `json:",omitempty"`
	Usage  Usage
	Stdout Output
	Stderr Output
}

// Suspend saves the state of a paused sandbox and ends its processes: it takes a slot of the runner no more.
// Its outputs are read to the end, then its connections to the socket are closed. Continue
// continues it. If durable, the state outlives the process until the sandbox goes on or ends, and Saved returns what
// Restore needs. errors.ErrUnsupported means that sandboxes of this kind cannot be suspended.
func (r *Runner) Suspend(ctx context.Context, s *Sandbox, durable bool) error {
	saver, ok := r.driver.(Saver)
	if !ok || s.req.Network != nil || s.req.Image.Unsaved {
		return fmt.Errorf("cannot suspend sandbox %q: %w", s.ID(), errors.ErrUnsupported)
	}
	ctx, done, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.machine.to(suspended, "suspend"); err != nil {
		return err
	}
	if err := r.suspend(ctx, saver, s, durable); err != nil {
		// It may have ended meanwhile: then that is its state.
		_ = s.machine.to(paused, "suspend")
		return fmt.Errorf("cannot suspend sandbox %q: %w", s.ID(), err)
	}
	return nil
}

func (r *Runner) suspend(ctx context.Context, saver Saver, s *Sandbox, durable bool) error {
	// The state cannot be larger than the memory, which is reserved while the size is unknown.
	reservation, err := r.vault.bytes.Take(s.req.Caller, s.Usage().PeakMemory)
	if err != nil {
		return err
	}
	defer reservation.Release()
	b, _ := s.now()
	s.move(nil) // from now on its end is not that of the sandbox
	state, err := saver.Save(ctx, b.process)
	if err == nil {
		// A paused kernel does not end by itself.
		err = errors.Join(b.process.Kill(), s.Drain(ctx))
	}
	reservation.Release()
	if err != nil {
		if state != nil {
			err = errors.Join(err, state.Close())
		}
		s.move(b)
		if s.endedSuspended() != nil {
			err = errors.Join(err, b.process.Kill())
		}
		return err
	}
	saved, err := r.store(ctx, s, b, state, durable)
	if err != nil {
		r.opts.Logger.WarnContext(ctx, "a suspended sandbox is kept in memory", slog.Any(telemetry.KeyError, err))
	}
	s.listener.replace(nil)
	err = b.close()
	s.meter.mu.Lock()
	s.meter.earlier = s.meter.usage.CPU
	s.meter.before = math.MaxInt64 // until it goes on
	s.meter.mu.Unlock()
	return errors.Join(err, s.keep(saved))
}

// store stores the state of a sandbox, as its difference to what the sandbox was started from.
func (r *Runner) store(ctx context.Context, s *Sandbox, b *body, state Template, durable bool) (*deposit, error) {
	like, err := r.baseFor(ctx, s, b)
	if err != nil {
		r.opts.Logger.WarnContext(ctx, "the state of a suspended sandbox is stored whole",
			slog.Any(telemetry.KeyError, err))
	}
	saved, err := r.vault.store(s.req.Caller, state, like, durable)
	return saved, errors.Join(err, like.release(false))
}

// keep stores the state of a suspended sandbox, unless it was ended meanwhile.
func (s *Sandbox) keep(saved *deposit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return saved.erase()
	}
	s.saved = saved
	return nil
}

// Saved returns a suspended sandbox as data. It returns false unless the sandbox is suspended and its state outlives
// the process.
func (r *Runner) Saved(s *Sandbox) (Saved, bool) {
	saver, ok := r.driver.(Saver)
	usage := s.Usage()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok || s.saved == nil || s.saved.path == "" {
		return Saved{}, false
	}
	return Saved{State: s.saved.name(), Key: s.saved.key.String(), Base: s.saved.base.saved(), Format: saver.Format(),
		Usage: usage, Stdout: s.Stdout(), Stderr: s.Stderr()}, true
}

// Files returns the names of the files that a Restore needs.
func (s Saved) Files() []string {
	if s.Base == nil {
		return []string{s.State}
	}
	return []string{s.State, s.Base.File}
}

// ReadSaved returns the content of a file of a saved sandbox, which is encrypted.
func (r *Runner) ReadSaved(name string) ([]byte, error) { return r.vault.readFile(name) }

// WriteSaved stores what ReadSaved returned in another process, unless there is a file of the name.
func (r *Runner) WriteSaved(name string, content func() ([]byte, error)) error {
	return r.vault.writeFile(name, content)
}

// SavedFormat returns the format of the states that this runner can restore, or "" if it restores none.
func (r *Runner) SavedFormat() string {
	saver, ok := r.driver.(Saver)
	if !ok {
		return ""
	}
	return saver.Format()
}

// Restore returns the suspended sandbox that another process has saved, for a request with the same image, limits and
// mounts. Continue continues it. It must be closed.
func (r *Runner) Restore(saved Saved, req Request) (*Sandbox, error) {
	saver, ok := r.driver.(Saver)
	if !ok || saver.Format() != saved.Format {
		return nil, errors.New("restoring a sandbox: its state was saved by another version of gVisor")
	}
	s := newSandbox(newID(), req)
	s.machine.now = suspended
	s.sendOnce.Do(func() {})
	s.meter.usage, s.meter.earlier, s.meter.before = saved.Usage, saved.Usage.CPU, math.MaxInt64
	s.streams.written.Store(saved.Stdout.Total + saved.Stderr.Total)
	s.streams.stdout.restore(saved.Stdout)
	s.streams.stderr.restore(saved.Stderr)
	_, done, err := r.enter(context.Background())
	if err != nil {
		return nil, err
	}
	defer done()
	if s.saved, err = r.vault.restore(req.Caller, saved); err != nil {
		return nil, fmt.Errorf("restoring a sandbox: %w", err)
	}
	r.adopt(s)
	return s, nil
}

// SweepSaved removes what is stored of suspended sandboxes that are not given. It is called before sandboxes are
// started. The caller must restore or erase each given one.
func (r *Runner) SweepSaved(keep []Saved) error { return r.vault.sweep(keep) }

// EraseSaved removes the state of a suspended sandbox that is not restored. It is no error if there is none.
func (r *Runner) EraseSaved(saved Saved) error { return r.vault.erase(saved) }

// EndSuspending frees what is kept for the case that a sandbox that went on is suspended again. It may be called twice.
func (s *Sandbox) EndSuspending() error {
	if b, _ := s.now(); b != nil {
		return b.endSuspending()
	}
	return nil
}

func (b *body) endSuspending() error { return b.base.Swap(nil).release(false) }

// Leave frees what a suspended sandbox takes in this process, and leaves its state to a Restore in another one.
// Nothing else may use the sandbox afterwards, apart from Close.
func (s *Sandbox) Leave() error {
	saved := s.take()
	if saved == nil {
		return nil
	}
	return saved.leave()
}

// Slot waits for a slot of the runner in which a suspended sandbox can go on, however many wait. The caller must pass
// it to Continue or release it.
func (r *Runner) Slot(ctx context.Context, s *Sandbox) (*quota.Reservation, error) {
	ctx, done, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return r.awaitSlot(ctx, s.req)
}

// Continue lets a suspended sandbox go on, in new processes, in a slot that it takes over. If it fails, the
// sandbox is over. begin is called when the new processes are ready to start; nothing starts if it returns an error.
func (r *Runner) Continue(ctx context.Context, s *Sandbox, slot *quota.Reservation, begin func() error) (err error) {
	taken := false // the slot, by the new processes
	defer func() {
		if !taken {
			slot.Release()
		}
		if err != nil {
			s.endSuspended()
			err = fmt.Errorf("cannot continue sandbox %q: %w", s.ID(), err)
		}
	}()
	saver, ok := r.driver.(Saver)
	if !ok {
		return errors.ErrUnsupported
	}
	ctx, done, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	saved := s.take()
	if saved == nil {
		return errors.New("it was ended")
	}
	err = r.embody(s, func(spec Spec) (Process, error) { return r.startSaved(ctx, saver, spec, saved, begin) }, false)
	b, _ := s.now()
	if b != nil && saved.base != nil {
		b.base.Store(saved.base.hold())
		b.onClose.Add(b.endSuspending)
	}
	err = errors.Join(err, saved.erase())
	if b == nil {
		return err
	}
	s.hold(slot)
	taken = true
	if s.endedSuspended() != nil {
		s.move(nil)
		return errors.Join(err, b.close(), errors.New("it was ended"))
	}
	if err := errors.Join(err, verify(b.process)); err != nil {
		return errors.Join(err, b.process.Kill())
	}
	s.meter.mu.Lock()
	s.meter.before = b.process.Usage().CPU
	s.meter.mu.Unlock()
	return s.machine.to(running, "continue")
}

// startSaved starts the processes of a suspended sandbox. Its state is read while they are prepared.
func (r *Runner) startSaved(ctx context.Context, saver Saver, spec Spec, saved *deposit, begin func() error) (
	process Process, err error) {
	load := sync.OnceValues(func() (Template, error) { return saved.load(ctx, saver, spec) })
	var loading sync.WaitGroup
	loading.Go(func() { _, _ = load() })
	defer func() {
		loading.Wait()
		if state, _ := load(); state != nil {
			err = errors.Join(err, state.Close())
		}
	}()
	return saver.StartFrom(ctx, spec, func() (Template, error) {
		state, err := load()
		if err != nil {
			return nil, err
		}
		return state, begin()
	})
}

// awaitSlot takes a slot of the queue for a sandbox that has run before, however many wait.
func (r *Runner) awaitSlot(ctx context.Context, req Request) (*quota.Reservation, error) {
	for {
		turn, err := r.awaitTurn(ctx, req)
		if !errors.Is(err, ErrBusy) {
			return turn, err
		}
		select {
		case <-time.After(fullQueuePause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// fullQueuePause is how long a suspended sandbox waits before it tries to join a full queue again.
const fullQueuePause = 100 * time.Millisecond

// hold keeps the slot of the runner until the sandbox is closed or suspended.
func (s *Sandbox) hold(turn *quota.Reservation) { s.whenClosed(turn.Release) }

// whenClosed has do called when the sandbox, which its caller does not have yet, is closed or suspended.
func (s *Sandbox) whenClosed(do func()) {
	b, _ := s.now() // there is one: nothing suspends a sandbox that its caller has not got
	b.onClose.Add(func() error { do(); return nil })
}

// take returns the state of a suspended sandbox, once; nil if there is none.
func (s *Sandbox) take() *deposit {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.saved
	s.saved = nil
	return saved
}

// endSuspended ends a sandbox that is suspended, and reports whether it was.
func (s *Sandbox) endSuspended() bool {
	s.mu.Lock()
	if s.body != nil {
		s.mu.Unlock()
		return false
	}
	saved := s.saved
	s.saved = nil
	if s.ended == nil {
		s.ended = &Exit{Signal: 9}
		close(s.moved)
		s.moved = make(chan struct{})
	}
	s.mu.Unlock()
	_ = s.machine.to(stopped, "kill")
	if saved != nil {
		// An unnamed file ends with this process; a named one is removed when the next one starts.
		_ = saved.erase()
	}
	return true
}

// endedSuspended returns how a suspended sandbox was ended; nil if it was not.
func (s *Sandbox) endedSuspended() *Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// closeBody ends what is left of the sandbox, suspended or not.
func (s *Sandbox) closeBody() error {
	if s.endSuspended() {
		return nil
	}
	b, _ := s.now()
	err := b.close()
	<-s.streams.stderr.ended()
	<-s.streams.stdout.ended()
	return err
}
