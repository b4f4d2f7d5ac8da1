package bounds

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/runner"
)

// Kernel is the process of gVisor's kernel of one sandbox with what bounds it, in
// the hands of the driver that started it. Methods may be called concurrently once
// Process is set.
type Kernel struct {
	Group   *cgroup.Group // nil where control groups are unavailable
	Process *os.Process   // nil until it is started

	limit    int64  // of memory, in bytes
	reports  func() // handles what the kernel has reported; may be nil
	meter    *Meter // nil if the control group bounds the memory
	forks    forkBomb
	killed   atomic.Bool
	forksHit atomic.Bool
	guest    atomic.Pointer[unix.WaitStatus] // nil until the kernel reports that the guest ended

	done chan struct{} // closed when exit and err are set
	exit runner.Exit
	err  error
}

// NewKernel returns the kernel of a sandbox that is not started yet.
func NewKernel() *Kernel { return &Kernel{done: make(chan struct{})} }

// Bound has the memory of the started kernel metered where its group cannot
// bound it. reports handles all that the kernel has reported before the call.
func (k *Kernel) Bound(h *Host, l runner.Limits, reports func()) {
	k.meter, k.limit, k.reports = h.Meter(k.Process.Pid, l), l.Memory, reports
}

// WatchMemory kills the sandbox when it exceeds its memory limit or when the host has
// killed one of its processes: the remaining ones would hang or return wrong results.
func (k *Kernel) WatchMemory(ctx context.Context) {
	if k.meter != nil {
		if k.meter.Await(ctx) {
			_ = k.end() // the driver's Close reports what cannot be killed
		}
		return
	}
	if k.Group == nil {
		return
	}
	hit, err := k.Group.AwaitOOM(ctx)
	// Without the watch the limit still holds; only its consequences come later.
	if hit && err == nil {
		_ = k.end()
	}
}

// Refused ends the sandbox because the code wanted more processes than it may have.
func (k *Kernel) Refused() {
	k.forksHit.Store(true)
	_ = k.end() // the driver's Close reports what cannot be killed
}

// Counted notes how many processes and threads the code has.
func (k *Kernel) Counted(tasks int) { k.forks.counted(tasks, k.memory) }

// GuestEnded notes how the guest program ended.
func (k *Kernel) GuestEnded(status unix.WaitStatus) { k.guest.Store(&status) }

// Guest returns the wait status of the guest program. ok is false if the kernel has not
// reported that it ended.
func (k *Kernel) Guest() (status unix.WaitStatus, ok bool) {
	if k.reports != nil {
		k.reports()
	}
	if ended := k.guest.Load(); ended != nil {
		return *ended, true
	}
	return 0, false
}

// memory returns the most bytes that the sandbox took so far, and whether it has
// met its limit of them.
func (k *Kernel) memory() (peak int64, full bool) {
	if k.meter != nil {
		return k.meter.measure(), k.meter.hit.Load()
	}
	if k.Group == nil {
		return 0, false
	}
	stat := k.Group.Stat()
	return stat.PeakMemory, stat.OOMKills > 0
}

// IsEnded reports whether the sandbox was ended from here.
func (k *Kernel) IsEnded() bool { return k.killed.Load() || k.forksHit.Load() }

// LimitMet is the limit that the code has met so far, as the host knows.
func (k *Kernel) LimitMet() runner.Reason {
	exit, _ := k.cause(false)
	return exit.Reason
}

// cause returns how a sandbox ended, from its control group and the host's own actions,
// without asking gVisor. ok is false if these do not explain the end. The order matters:
// a limit explains a kill, and a kill explains any later report.
func (k *Kernel) cause(killed bool) (exit runner.Exit, ok bool) {
	if k.reports != nil {
		k.reports()
	}
	var stat cgroup.Stat
	if k.Group != nil {
		stat = k.Group.Stat()
	}
	exit = runner.Exit{Signal: int(unix.SIGKILL)}
	switch {
	// First: after a refusal the code may have gone on, and filled the memory too.
	case stat.TasksHit > 0, k.forksHit.Load():
		exit.Reason = runner.ReasonProcesses
	case stat.OOMKills > 0, k.meter != nil && k.meter.hit.Load():
		exit.Reason = runner.ReasonMemory
		if k.forks.filled(k.limit) {
			exit.Reason = runner.ReasonProcesses
		}
	case !killed:
		return runner.Exit{}, false
	}
	return exit, true
}

// Finish decides once how the sandbox ended: by a limit, by a kill, or otherwise as
// status returns. After it, Wait returns.
func (k *Kernel) Finish(status func() (runner.Exit, error)) {
	defer close(k.done)
	if exit, known := k.cause(k.killed.Load()); known {
		k.exit = exit
		return
	}
	k.exit, k.err = status()
}

// Done is closed when the sandbox has ended.
func (k *Kernel) Done() <-chan struct{} { return k.done }

// OutOfMemory reports whether the sandbox has met its limit of memory.
func (k *Kernel) OutOfMemory() bool { return k.LimitMet() == runner.ReasonMemory }

// Wait blocks until the guest has ended.
func (k *Kernel) Wait(ctx context.Context) (runner.Exit, error) {
	select {
	case <-k.done:
		return k.exit, k.err
	case <-ctx.Done():
		return runner.Exit{}, ctx.Err()
	}
}

// Kill ends every process of the sandbox.
func (k *Kernel) Kill() error {
	k.killed.Store(true)
	return k.end()
}

// end kills gVisor's kernel. It is the first process of its PID namespace, so
// all processes that run code die with it (pid_namespaces(7)).
func (k *Kernel) end() error {
	if k.Process == nil {
		return nil
	}
	if err := k.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Usage reads the counters of the control group and the meter.
func (k *Kernel) Usage() runner.Usage {
	var usage runner.Usage
	if k.Group != nil {
		stat := k.Group.Stat()
		usage = runner.Usage{PeakMemory: stat.PeakMemory, CPU: stat.CPU}
	}
	if k.meter != nil {
		usage.PeakMemory = k.meter.peak.Load()
	}
	return usage
}

// RemoveGroup kills what is left in the control group and removes it.
func (k *Kernel) RemoveGroup(ctx context.Context) error {
	if k.Group == nil {
		return nil
	}
	return errors.Join(k.Group.Kill(ctx), k.Group.Remove(ctx))
}
