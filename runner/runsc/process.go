package runsc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ocispec"
)

// process is a started sandbox: the runsc that waits for it, gVisor's kernel,
// its file server and their stubs.
type process struct {
	spec  runner.Spec
	host  ocispec.Identity
	group *cgroup.Group // nil where control groups are unavailable

	stdin          *os.File
	stdout, stderr *os.File
	theirs         []*os.File // the sandbox's ends of the pipes, until it has them

	forks       *forkWatch
	forksHit    atomic.Bool
	launcher    int      // process ID of the runsc that waits; 0 until it is started
	goferMounts []string // where the file server must have file systems, sorted
	killed      atomic.Bool
	done        chan struct{} // closed when runsc has ended; exit and err are set then
	watched     chan struct{} // closed when the memory is no longer watched
	exit        runner.Exit
	err         error

	closeOnce sync.Once
	closeErr  error
}

var _ runner.Process = (*process)(nil)

// killPatience bounds waiting for processes that were sent SIGKILL.
const killPatience = 10 * time.Second

func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return p.stdout }
func (p *process) Stderr() io.Reader     { return p.stderr }

// openPipes makes the three pipes to the guest.
func (p *process) openPipes() error {
	for _, pipe := range []struct {
		ours   **os.File
		theirs int // which end of the pipe is the guest's
	}{{&p.stdin, 0}, {&p.stdout, 1}, {&p.stderr, 1}} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ends := [2]*os.File{r, w}
		*pipe.ours = ends[1-pipe.theirs]
		p.theirs = append(p.theirs, ends[pipe.theirs])
	}
	return nil
}

// start starts runsc inside the group.
func (p *process) start(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.theirs[0], p.theirs[1], p.theirs[2]
	// When Airlock dies, runsc dies; and what runsc started dies with runsc.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	start := cmd.Start
	if p.group != nil {
		start = func() error { return p.group.Start(cmd) }
	}
	if err := start(); err != nil {
		return err
	}
	p.launcher = cmd.Process.Pid
	closeAll(p.theirs)
	p.theirs = nil
	watching, stop := context.WithCancel(context.Background())
	go func() {
		defer close(p.watched)
		p.watchMemory(watching)
	}()
	go func() {
		defer close(p.done)
		defer stop()
		p.finish(cmd.Wait(), cmd.ProcessState)
	}()
	return nil
}

// meetProcessLimit ends the sandbox because the code wanted more processes than
// it may have.
func (p *process) meetProcessLimit() {
	p.forksHit.Store(true)
	_ = p.signal() // Kill and Close report what cannot be killed
}

// watchMemory ends the sandbox as soon as the kernel has killed a part of it:
// what is left would hang or answer wrongly.
func (p *process) watchMemory(ctx context.Context) {
	if p.group == nil {
		return
	}
	hit, err := p.group.AwaitOOM(ctx)
	// Without the watch the limit still holds; only its consequences come later.
	if hit && err == nil {
		_ = p.signal() // Kill and Close report what cannot be killed
	}
}

// finish decides how the sandbox ended. The order matters: a limit explains a
// kill, and a kill explains whatever runsc says about it.
func (p *process) finish(waitErr error, state *os.ProcessState) {
	var stat cgroup.Stat
	if p.group != nil {
		stat = p.group.Stat()
	}
	switch {
	case stat.OOMKills > 0:
		p.exit = runner.Exit{Signal: int(unix.SIGKILL), Reason: runner.ReasonMemory}
	case stat.TasksHit > 0, p.forksHit.Load():
		p.exit = runner.Exit{Signal: int(unix.SIGKILL), Reason: runner.ReasonProcesses}
	case p.killed.Load():
		p.exit = runner.Exit{Signal: int(unix.SIGKILL)}
	case state == nil:
		p.err = waitErr
	default:
		p.exit, p.err = exitOf(state, p.spec.StateDir)
	}
}

// exitOf reads the status of runsc, which is the guest's: a guest that died of
// a signal shows as 128 and the signal, as in a shell, so one that exits with
// such a status looks the same.
func exitOf(state *os.ProcessState, stateDir string) (runner.Exit, error) {
	if reason := failure(stateDir); reason != "" {
		return runner.Exit{}, fmt.Errorf("runsc: %s", reason)
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	switch code := status.ExitStatus(); {
	case status.Signaled():
		return runner.Exit{}, fmt.Errorf("runsc was ended by signal %d", status.Signal())
	case code > 128 && code < 128+65:
		return runner.Exit{Code: code, Signal: code - 128}, nil
	default:
		return runner.Exit{Code: code}, nil
	}
}

// Wait blocks until the guest has ended.
func (p *process) Wait(ctx context.Context) (runner.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return runner.Exit{}, ctx.Err()
	}
}

// Kill ends every process of the sandbox.
func (p *process) Kill() error {
	p.killed.Store(true)
	return p.signal()
}

func (p *process) signal() error {
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	if p.group != nil {
		return p.group.Kill(ctx)
	}
	return killTree(ctx, p.spec.StateDir)
}

// Usage reads the counters of the control group.
func (p *process) Usage() runner.Usage {
	if p.group == nil {
		return runner.Usage{}
	}
	stat := p.group.Stat()
	return runner.Usage{PeakMemory: stat.PeakMemory, CPU: stat.CPU}
}

// Close kills the sandbox and removes everything Start made, but the files in
// StateDir, which is the caller's.
func (p *process) Close() error {
	p.closeOnce.Do(func() { p.closeErr = p.close() })
	return p.closeErr
}

func (p *process) close() error {
	var errs []error
	if p.launcher != 0 {
		errs = append(errs, p.Kill())
		<-p.done
		<-p.watched
	}
	if p.forks != nil {
		p.forks.close()
	}
	closeAll(append(p.theirs, p.stdin, p.stdout, p.stderr))
	if p.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killPatience)
		defer cancel()
		errs = append(errs, p.group.Remove(ctx))
	}
	return errors.Join(errs...)
}

// closeAll closes pipes. A pipe that is closed already is as closed as wanted.
func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
