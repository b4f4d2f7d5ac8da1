package ctrd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
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

// await waits for the task to end and returns its status. A daemon that is
// restarted meanwhile is asked again, for as long as the sandbox lives.
func (p *process) await() (uint32, error) {
	var lost time.Time
	for {
		answer, err := p.daemon.client.TaskService().Wait(
			context.Background(), &tasks.WaitRequest{ContainerID: p.spec.ID})
		if err == nil {
			return answer.GetExitStatus(), nil
		}
		if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
			return 0, err
		}
		switch {
		case p.Process.Signal(unix.Signal(0)) == nil:
			lost = time.Time{}
		case p.IsEnded():
			return 0, err // no need to ask
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > lostDaemonTimeout:
			return 0, err
		}
		time.Sleep(lostDaemonRetry)
	}
}

// finish decides how the sandbox ended.
func (p *process) finish(status uint32, err error) {
	p.Finish(func() (runner.Exit, error) {
		if err != nil {
			return runner.Exit{}, fmt.Errorf("asking containerd how it ended: %w", err)
		}
		return p.exitOf(status)
	})
}

// shimFailed is the status that the shim gives a task whose kernel it cannot ask. A
// kernel that has ended before the shim asked, as on a busy machine, is such a one.
const shimFailed = 128

// exitOf converts the exit status of the task, which is that of the guest, or the wait
// status that the kernel has reported.
func (p *process) exitOf(status uint32) (runner.Exit, error) {
	if status != shimFailed {
		return gvisor.Exit(int(status), p.Guest), nil
	}
	if ended, ok := p.Guest(); ok {
		return gvisor.ExitOf(ended), nil
	}
	if reason := gvisor.Failure(logFile(p.spec.StateDir), panicFile(p.spec.StateDir)); reason != "" {
		return runner.Exit{}, fmt.Errorf("gVisor's kernel: %s", reason)
	}
	return runner.Exit{}, errors.New("gVisor's kernel ended without reporting how the guest ended")
}

// Close kills the sandbox and removes everything that Start created except the files in
// StateDir. The caller must remove these.
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
	if p.Process != nil {
		errs = append(errs, p.Kill())
	}
	if p.started {
		select {
		case <-p.Done():
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
	if p.Process != nil {
		errs = append(errs, p.Process.Release())
	}
	if p.descriptors != nil {
		errs = append(errs, p.descriptors.Close())
	}
	p.streams.close()
	if p.forks != nil {
		p.forks.close()
	}
	return errors.Join(append(errs, p.RemoveGroup(ctx))...)
}
