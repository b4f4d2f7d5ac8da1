package ctrd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/posture"
)

// process is a sandbox: a task of containerd, whose shim has started gVisor's
// kernel and the server of its files.
type process struct {
	*bounds.Kernel
	daemon *daemon
	spec   runner.Spec
	config *specs.Spec
	user   posture.User // of the host, as which files are served
	bound  *bounds.Host

	streams streams
	forks   *forkWatch

	descriptors *os.File       // the kernel's, as a directory
	files       int            // process that serves the sandbox's files
	started     bool           // something waits for the task's end
	watching    sync.WaitGroup // of the memory

	closeOnce sync.Once
	closeErr  error
}

var (
	_ runner.Flusher       = (*process)(nil)
	_ runner.LimitReporter = (*process)(nil)
)

// startTimeout bounds the daemon's work on one step of a start. On an idle
// machine a start takes a quarter of a second.
const startTimeout = 30 * time.Second

// Stdin is the guest's standard input.
func (p *process) Stdin() io.WriteCloser { return p.streams.stdin }

// Stdout is the guest's standard output.
func (p *process) Stdout() io.Reader { return p.streams.stdout.out }

// Stderr is the guest's standard error.
func (p *process) Stderr() io.Reader { return p.streams.stderr.out }

// stdoutFD is the number under which gVisor's kernel holds the guest's standard
// output; the next one is standard error (gVisor, runsc/boot, startingStdioFD).
const stdoutFD = 254

// Flush waits until what the guest has written can be read here.
func (p *process) Flush(ctx context.Context) error {
	for i, r := range []*relay{p.streams.stdout, p.streams.stderr} {
		err := r.flush(ctx, func() (*os.File, error) { return openStream(p.descriptors, stdoutFD+i) })
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare makes everything on this side that the sandbox needs.
func (p *process) prepare(d *Driver) error {
	inside, err := p.daemon.users.Pick(p.spec.ID)
	if err != nil {
		return err
	}
	p.user = p.daemon.users.Outside(inside)
	if p.config, err = configure(p.spec, inside); err != nil {
		return err
	}
	state := p.spec.StateDir
	if err := writeFiles(state, d.opts.Runsc); err != nil {
		return err
	}
	// Only the server of the sandbox's files connects to its socket.
	if err := os.Chown(filepath.Dir(p.spec.SocketDir()), int(p.user.UID), int(p.user.GID)); err != nil {
		return err
	}
	if err := p.streams.open(state, func() error { return p.daemon.closeStdin(p.spec.ID) }); err != nil {
		return err
	}
	p.forks, err = watchForks(watchSocket(state), p.Kernel)
	return err
}

// boot has the shim start gVisor's kernel, which does not run the guest yet, and
// puts the sandbox's processes into the control group. A call that is under way
// is not cancelled: the daemon would go on by itself, unseen.
func (p *process) boot(ctx context.Context, shim string, root []*types.Mount) error {
	state := p.spec.StateDir
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	created, err := p.daemon.client.TaskService().Create(detached, &tasks.CreateTaskRequest{
		ContainerID: p.spec.ID, RuntimePath: shim, Rootfs: root,
		Stdin: stream(state, "stdin"), Stdout: stream(state, "stdout"), Stderr: stream(state, "stderr"),
	})
	if err != nil {
		return p.explain(ctx, "creating the task", err)
	}
	p.streams.carry()
	if p.Process, err = os.FindProcess(int(created.GetPid())); err != nil {
		return err
	}
	if p.descriptors, err = os.Open(fmt.Sprintf("/proc/%d/fd", p.Process.Pid)); err != nil {
		return err
	}
	if err := p.enterGroup(); err != nil {
		return fmt.Errorf("placing the sandbox in its control group: %w", err)
	}
	return context.Cause(ctx)
}

// run lets the kernel start the guest program, and watches over it.
func (p *process) run(ctx context.Context) error {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if _, err := p.daemon.client.TaskService().Start(
		detached, &tasks.StartRequest{ContainerID: p.spec.ID}); err != nil {
		return p.explain(ctx, "starting the task", err)
	}
	p.started = true
	p.Bound(p.bound, p.spec.Limits, p.forks.flush)
	watching, stop := context.WithCancel(context.Background())
	p.watching.Go(func() { p.WatchMemory(watching) })
	go func() {
		defer stop()
		p.finish(p.await())
	}()
	return context.Cause(ctx)
}

// explain prefers the caller's reason to gVisor's, and that to the daemon's.
func (p *process) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.OutOfMemory() {
		return errors.New("gVisor's kernel: the memory limit is too small for it")
	}
	if reason := gvisor.Failure(logFile(p.spec.StateDir), panicFile(p.spec.StateDir)); reason != "" {
		return fmt.Errorf("gVisor's kernel: %s", reason)
	}
	// The daemon passes on what runsc wrote, on as many lines as it wants.
	return fmt.Errorf("%s: %s", doing, gvisor.OneLine(errgrpc.ToNative(err).Error()))
}

// enterGroup moves what the shim has started into the sandbox's control group:
// gVisor's kernel, the server of its files, and whatever they have started. No
// code has run yet, and what is started from now on is born there.
func (p *process) enterGroup() error {
	shim, err := posture.Parent(p.Process.Pid)
	if err != nil {
		return err
	}
	siblings, err := posture.Children(shim)
	if err != nil {
		return err
	}
	for _, pid := range siblings {
		if pid != p.Process.Pid && posture.HasName(pid, fileServerName) {
			p.files = pid
		}
	}
	if p.files == 0 {
		return errors.New("nothing serves its files")
	}
	if p.Group == nil {
		return nil
	}
	for _, pid := range []int{p.Process.Pid, p.files} {
		if err := p.enterTree(pid); err != nil {
			return err
		}
	}
	return nil
}

// enterTree moves a process and then its descendants, which may be gone by then.
func (p *process) enterTree(pid int) error {
	if err := p.Group.Add(pid); err != nil {
		return err
	}
	children, err := posture.Children(pid)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := p.enterTree(child); err != nil && !posture.Gone(err) {
			return err
		}
	}
	return nil
}
