package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
	"github.com/airlock-mcp/airlock/runner/gvisor"
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

// LimitMet is the limit that the code has met so far, as the host knows.
func (p *process) LimitMet() runner.Reason {
	exit, _ := p.cause(false)
	return exit.Reason
}

// cause is bounds.Cause of this sandbox, with all that its kernel has reported.
func (p *process) cause(killed bool) (runner.Exit, bool) {
	p.forks.reports.Flush()
	return bounds.Cause(p.group, p.meter, p.forksHit.Load(), killed)
}

// finish decides how the sandbox ended.
func (p *process) finish(waitErr error, state *os.ProcessState) {
	exit, known := p.cause(p.killed.Load())
	switch {
	case known:
		p.exit = exit
	case state == nil:
		p.err = waitErr
	default:
		p.exit, p.err = exitOf(state, p.spec.StateDir)
	}
}

// exitOf reads the status of gVisor's kernel, which is the guest's.
func exitOf(state *os.ProcessState, stateDir string) (runner.Exit, error) {
	if reason := gvisor.Failure(logFile(stateDir), panicFile(stateDir)); reason != "" {
		return runner.Exit{}, fmt.Errorf("gVisor's kernel: %s", reason)
	}
	if status, _ := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return runner.Exit{}, fmt.Errorf("gVisor's kernel was ended by signal %d", status.Signal())
	}
	return gvisor.Exit(state.ExitCode()), nil
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

// signal kills gVisor's kernel. It is the first process of its PID namespace,
// so whatever else the sandbox has dies with it (pid_namespaces(7)).
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

func (p *process) close() error {
	var errs []error
	if p.kernel != nil {
		errs = append(errs, p.Kill())
		<-p.done
		<-p.watched
	}
	closeAll(append(p.theirs, p.stdin, p.stdout, p.stderr, p.started))
	if p.listener != nil {
		p.listener.Close()
	}
	if p.broker != nil {
		p.broker.Close()
	}
	if p.forks != nil {
		p.forks.close()
	}
	if p.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		defer cancel()
		errs = append(errs, p.group.Kill(ctx), p.group.Remove(ctx))
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
