package runnertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/runner"
)

// Guest is the program inside a fake sandbox. It runs in the test's process; ctx is
// cancelled when the sandbox is killed. It returns how the program ended.
type Guest func(ctx context.Context, g *GuestIO) runner.Exit

// GuestIO is what a guest inside sees.
type GuestIO struct {
	Stdin  *bufio.Reader
	Stdout io.Writer
	Stderr io.Writer
	Spec   runner.Spec
	// Interrupted receives a value for each interruption. One is dropped if another is
	// already pending.
	Interrupted <-chan struct{}
}

// Proof is what a guest finds in /proc/version and /proc/net/dev of a gVisor sandbox.
const Proof = `Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`

// Ready performs the first two steps of docs/socket.md: it sends the greeting of gVisor's
// kernel and the ready line, and waits for the start line. It reports whether one came.
func (g *GuestIO) Ready() bool { return g.Greet(Proof) }

// Greet is Ready with other words in place of the proof.
func (g *GuestIO) Greet(proof string) bool {
	if _, err := io.WriteString(g.Stdout, proof+"ready\n"); err != nil {
		return false
	}
	_, err := g.Stdin.ReadString('\n')
	return err == nil
}

// Dial connects to the broker's socket.
func (g *GuestIO) Dial() (net.Conn, error) {
	return net.Dial("unix", g.Spec.Broker.Addr().String())
}

// Fake is a driver whose sandboxes are goroutines. The zero value runs nothing;
// set Guest. Fields must not change once it is in use.
//
// It can save: a sandbox that was started from a template has read the ready
// line's answer already, so its Guest is Restored.
type Fake struct {
	Guest     Guest
	StartErr  error // Start returns it
	VerifyErr error // Verify returns it
	WaitErr   error // Wait returns it once the guest has ended
	CloseErr  error // Close returns it, after having closed
	SaveErr   error // Save returns it
	Restored  Guest // plays what goes on from a template

	mu    sync.Mutex
	alive int
	most  int
	met   runner.Reason
	swept []string
	saved struct{ templates, closed, starts int }
}

var _ runner.Saver = (*Fake)(nil)

// MeetLimit has LimitMet of all sandboxes return the reason from now on.
func (f *Fake) MeetLimit(reason runner.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.met = reason
}

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Check finds nothing wrong.
func (f *Fake) Check(context.Context) error { return nil }

// Sweep remembers what it was asked to sweep.
func (f *Fake) Sweep(_ context.Context, stateDir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.swept = append(f.swept, stateDir)
	return nil
}

// Swept lists the directories that Sweep was called with.
func (f *Fake) Swept() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.swept...)
}

// Alive is how many sandboxes are not yet closed, and how many were at most.
func (f *Fake) Alive() (now, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alive, f.most
}

// Templates is how many templates were made, how many of them are closed, and
// how many sandboxes were started from one.
func (f *Fake) Templates() (made, closed, starts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved.templates, f.saved.closed, f.saved.starts
}

// fakeTemplate is what Save returns.
type fakeTemplate struct {
	driver *Fake
	spec   runner.Spec
	closed bool
}

func (t *fakeTemplate) Size() int64 { return 1 << 20 }

func (t *fakeTemplate) State() *io.SectionReader {
	return io.NewSectionReader(strings.NewReader("a saved goroutine"), 0, t.Size())
}

func (t *fakeTemplate) Close() error {
	t.driver.mu.Lock()
	defer t.driver.mu.Unlock()
	if t.closed {
		return errors.New("the template was closed twice")
	}
	t.closed = true
	t.driver.saved.closed++
	return nil
}

// Save keeps the sandbox's spec.
func (f *Fake) Save(_ context.Context, p runner.Process) (runner.Template, error) {
	if f.SaveErr != nil {
		return nil, f.SaveErr
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved.templates++
	return &fakeTemplate{driver: f, spec: p.(*fakeProcess).spec}, nil
}

// Format names the driver.
func (f *Fake) Format() string { return f.Name() }

// Load returns a template for the spec.
func (f *Fake) Load(_ context.Context, spec runner.Spec, state io.Reader) (runner.Template, error) {
	if _, err := io.ReadAll(state); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved.templates++
	return &fakeTemplate{driver: f, spec: spec}, nil
}

// StartFrom runs Restored in a goroutine.
func (f *Fake) StartFrom(ctx context.Context, spec runner.Spec, state func() (runner.Template, error)) (
	runner.Process, error) {
	saved, err := state()
	if err != nil {
		return nil, err
	}
	t := saved.(*fakeTemplate)
	f.mu.Lock()
	closed := t.closed
	f.saved.starts++
	f.mu.Unlock()
	if closed || !reflect.DeepEqual(t.spec.Image, spec.Image) {
		return nil, errors.New("the template is closed, or of another image")
	}
	return f.start(ctx, spec, f.Restored)
}

// Start runs the guest in a goroutine.
func (f *Fake) Start(ctx context.Context, spec runner.Spec) (runner.Process, error) {
	return f.start(ctx, spec, f.Guest)
}

func (f *Fake) start(ctx context.Context, spec runner.Spec, guest Guest) (runner.Process, error) {
	if f.StartErr != nil {
		return nil, f.StartErr
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &fakeProcess{driver: f, spec: spec, done: make(chan struct{}), interrupted: make(chan struct{}, 1)}
	var theirs [3]*os.File
	for i, ours := range []**os.File{&p.stdin, &p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		theirs[i], *ours = w, r
		if i == 0 {
			theirs[i], *ours = r, w
		}
	}
	f.count(1)
	inside, kill := context.WithCancel(context.WithoutCancel(ctx))
	p.kill = kill
	// A killed process loses its descriptors whatever it is doing.
	context.AfterFunc(inside, func() { closeFiles(theirs[:]) })
	go func() {
		defer close(p.done)
		defer closeFiles(theirs[:])
		p.exit = guest(inside, &GuestIO{Stdin: bufio.NewReader(theirs[0]), Stdout: theirs[1], Stderr: theirs[2],
			Spec: spec, Interrupted: p.interrupted})
		if inside.Err() != nil {
			p.exit = runner.Exit{Signal: 9}
		}
	}()
	return p, nil
}

func (f *Fake) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive += n
	f.most = max(f.most, f.alive)
}

var _ runner.Interrupter = (*fakeProcess)(nil)

type fakeProcess struct {
	driver                *Fake
	spec                  runner.Spec
	stdin, stdout, stderr *os.File
	kill                  context.CancelFunc
	done                  chan struct{}
	interrupted           chan struct{}
	exit                  runner.Exit
	once                  sync.Once
}

func (p *fakeProcess) Stdin() io.WriteCloser { return p.stdin }
func (p *fakeProcess) Stdout() io.Reader     { return p.stdout }
func (p *fakeProcess) Stderr() io.Reader     { return p.stderr }
func (p *fakeProcess) Verify() error         { return p.driver.VerifyErr }
func (p *fakeProcess) Kill() error           { p.kill(); return nil }

func (p *fakeProcess) Usage() runner.Usage { return runner.Usage{PeakMemory: 1 << 20} }

// Interrupt notifies the guest.
func (p *fakeProcess) Interrupt(context.Context) error {
	select {
	case p.interrupted <- struct{}{}:
	default:
	}
	return nil
}

func (p *fakeProcess) LimitMet() runner.Reason {
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	return p.driver.met
}

func (p *fakeProcess) Wait(ctx context.Context) (runner.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.driver.WaitErr
	case <-ctx.Done():
		return runner.Exit{}, ctx.Err()
	}
}

func (p *fakeProcess) Close() error {
	p.once.Do(func() {
		p.kill()
		<-p.done
		closeFiles([]*os.File{p.stdin, p.stdout, p.stderr})
		p.driver.count(-1)
	})
	return p.driver.CloseErr
}

// closeFiles closes pipes; one that was closed before is fine.
func closeFiles(files []*os.File) {
	for _, f := range files {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			panic(err) // closing an open pipe cannot fail
		}
	}
}
