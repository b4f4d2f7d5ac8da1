package ctrd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// closeTimeout bounds the removal of one sandbox, its daemon's part included.
const closeTimeout = 30 * time.Second

// lostDaemonTimeout is how long a daemon that was asked about a dead sandbox may be
// away, as when it is restarted, and how often it is asked.
const (
	lostDaemonTimeout = 10 * time.Second
	lostDaemonRetry   = 50 * time.Millisecond
)

// watchMemory ends the sandbox as soon as it takes more memory than it may, or
// the host has killed a part of it: what is left would hang or answer wrongly.
func (p *process) watchMemory(ctx context.Context) {
	if p.meter != nil {
		if p.meter.Await(ctx) {
			_ = p.signal() // Close reports what cannot be killed
		}
		return
	}
	hit, err := p.group.AwaitOOM(ctx)
	// Without the watch the limit still holds; only its consequences come later.
	if hit && err == nil {
		_ = p.signal() // Close reports what cannot be killed
	}
}

// meetProcessLimit ends the sandbox because the code wanted more processes than
// it may have.
func (p *process) meetProcessLimit() {
	p.forksHit.Store(true)
	_ = p.signal() // Close reports what cannot be killed
}

// await waits for the task to end and returns its status. A daemon that is
// restarted meanwhile is asked again, for as long as the sandbox lives.
func (p *process) await() (uint32, error) {
	var lost time.Time
	for {
		answer, err := p.daemon.client.TaskService().Wait(context.Background(), &tasks.WaitRequest{ContainerID: p.spec.ID})
		if err == nil {
			return answer.GetExitStatus(), nil
		}
		if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
			return 0, err
		}
		switch {
		case p.kernel.Signal(unix.Signal(0)) == nil:
			lost = time.Time{}
		case p.killed.Load() || p.forksHit.Load():
			return 0, err // no need to ask
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > lostDaemonTimeout:
			return 0, err
		}
		time.Sleep(lostDaemonRetry)
	}
}

// LimitMet is the limit that the code has met so far, as the host knows.
func (p *process) LimitMet() runner.Reason {
	exit, _ := p.cause(false)
	return exit.Reason
}

// cause is bounds.Cause of this sandbox, with all that its kernel has reported.
func (p *process) cause(killed bool) (runner.Exit, bool) {
	p.forks.flush()
	return bounds.Cause(p.group, p.meter, p.forksHit.Load(), killed)
}

// finish decides how the sandbox ended.
func (p *process) finish(status uint32, err error) {
	exit, known := p.cause(p.killed.Load())
	switch {
	case known:
		p.exit = exit
	case err != nil:
		p.err = fmt.Errorf("asking containerd how it ended: %w", err)
	default:
		p.exit, p.err = exitOf(status, p.spec.StateDir)
	}
}

// shimFailed is the status that the shim gives a task whose kernel it cannot ask.
const shimFailed = 128

// exitOf reads the status of the task, which is the guest's.
func exitOf(status uint32, stateDir string) (runner.Exit, error) {
	if status != shimFailed {
		return gvisor.Exit(int(status)), nil
	}
	if reason := gvisor.Failure(logFile(stateDir), panicFile(stateDir)); reason != "" {
		return runner.Exit{}, fmt.Errorf("gVisor's kernel: %s", reason)
	}
	return runner.Exit{}, errors.New("gVisor's kernel ended without saying how the guest did")
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

// signal kills gVisor's kernel directly, not by way of the daemon. The kernel is
// the first process of its PID namespace, so whatever runs code dies with it
// (pid_namespaces(7)); the server of its files ends when its last client has.
func (p *process) signal() error {
	if p.kernel == nil {
		return nil
	}
	if err := p.kernel.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Usage reads the counters of the control group.
func (p *process) Usage() runner.Usage {
	return bounds.Usage(p.group, p.meter)
}

// Close kills the sandbox and removes everything Start made, but the files in
// StateDir, which is the caller's.
func (p *process) Close() error {
	p.closeOnce.Do(func() { p.closeErr = p.close() })
	return p.closeErr
}

// abandon closes a sandbox that was never handed out, so nothing reads what it writes.
func (p *process) abandon() error {
	p.streams.abandon()
	return p.Close()
}

func (p *process) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	if p.kernel != nil {
		errs = append(errs, p.Kill())
	}
	if p.started {
		select {
		case <-p.done:
			p.watching.Wait()
		case <-ctx.Done():
			errs = append(errs, errors.New("containerd does not say that it has ended"))
		}
	}
	// What never ran does not end as usual, nor what was paused: the shim takes it
	// for alive.
	if !p.started || p.daemon.deleteTask(ctx, p.spec.ID) != nil {
		errs = append(errs, p.daemon.endTask(ctx, p.spec.StateDir, p.spec.ID))
	}
	errs = append(errs, p.daemon.remove(ctx, p.spec.ID))
	if p.kernel != nil {
		errs = append(errs, p.kernel.Release())
	}
	if p.descriptors != nil {
		errs = append(errs, p.descriptors.Close())
	}
	p.streams.close()
	if p.forks != nil {
		p.forks.close()
	}
	if p.group != nil {
		errs = append(errs, p.group.Kill(ctx), p.group.Remove(ctx))
	}
	return errors.Join(errs...)
}
