package runsc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/posture"
	"github.com/airlock-mcp/airlock/runner/runsc/brokerfs"
	"github.com/airlock-mcp/airlock/runner/runsc/hostfs"
)

// process is a sandbox: gVisor's kernel, the stubs in which the code's
// instructions run, and what serves them on this side.
type process struct {
	*bounds.Kernel
	spec  runner.Spec
	host  posture.User
	bound *bounds.Host

	stdin          *os.File
	stdout, stderr *os.File
	started        *os.File // the kernel writes one byte when it listens
	listener       *net.UnixListener
	broker         *brokerfs.Server
	live           []*hostfs.Server // of the live mounts
	forks          *forkWatch
	theirs         []*os.File // the kernel's, until it has them

	watched   chan struct{} // closed when the memory is no longer watched
	closeOnce sync.Once
	closeErr  error
}

var _ runner.LimitReporter = (*process)(nil)

// killTimeout bounds waiting for processes that were sent SIGKILL.
const killTimeout = 10 * time.Second

// Stdin is the guest's standard input.
func (p *process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the guest's standard output.
func (p *process) Stdout() io.Reader { return p.stdout }

// Stderr is the guest's standard error.
func (p *process) Stderr() io.Reader { return p.stderr }

// forking is held while a kernel is started. Package syscall writes a child's
// user mappings through descriptors without O_CLOEXEC, which a child that is
// forked at the same moment would keep, and the posture check refuse.
var forking sync.Mutex

// boot starts the kernel inside the group and waits until it listens.
func (p *process) boot(ctx context.Context, cmd *exec.Cmd) error {
	start := cmd.Start
	if p.Group != nil {
		start = func() error { return p.Group.Start(cmd) }
	}
	forking.Lock()
	err := start()
	forking.Unlock()
	closeAll(p.theirs)
	p.theirs = nil
	if err != nil {
		return fmt.Errorf("starting gVisor's kernel: %w", err)
	}
	p.Process = cmd.Process
	p.Bound(p.bound, p.spec.Limits, p.forks.reports.Flush)
	watching, stop := context.WithCancel(context.Background())
	go func() {
		defer close(p.watched)
		p.WatchMemory(watching)
	}()
	go func() {
		defer stop()
		err := cmd.Wait()
		p.Finish(func() (runner.Exit, error) {
			if cmd.ProcessState == nil {
				return runner.Exit{}, err
			}
			return p.exitOf(cmd.ProcessState)
		})
	}()
	return p.awaitKernel(ctx)
}

// awaitKernel waits until the kernel listens for its caller.
func (p *process) awaitKernel(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.started.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := p.started.Read(make([]byte, 1)); err != nil {
		return p.explain(ctx, errors.New("gVisor's kernel ended at once"))
	}
	return nil
}

// explain prefers the kernel's own reason to err, once it has ended, and the
// caller's reason to both.
func (p *process) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-p.Done():
	case <-time.After(time.Second):
		return err
	}
	switch reason := gvisor.Failure(logFile(p.spec.StateDir), panicFile(p.spec.StateDir)); {
	case p.OutOfMemory():
		return errors.New("gVisor's kernel: the memory limit is too small for it")
	case reason != "":
		return fmt.Errorf("gVisor's kernel: %s", reason)
	}
	return err
}

// run lets the kernel start the guest program.
func (p *process) run(ctx context.Context) error {
	kernel, err := p.dial()
	if err != nil {
		return p.explain(ctx, err)
	}
	defer kernel.close()
	if err := p.setNetwork(ctx, kernel, false); err != nil {
		return p.explain(ctx, err)
	}
	if err := kernel.call(ctx, methodStart, p.spec.ID); err != nil {
		return p.explain(ctx, err)
	}
	return nil
}

// dial connects to the kernel's control socket.
func (p *process) dial() (*control, error) { return dialControl(controlSocket(p.spec.StateDir)) }
