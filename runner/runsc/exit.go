package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// exitOf converts the exit status of gVisor's kernel, which is that of the guest.
func (p *process) exitOf(state *os.ProcessState) (runner.Exit, error) {
	if reason := gvisor.Failure(logFile(p.spec.StateDir), panicFile(p.spec.StateDir)); reason != "" {
		return runner.Exit{}, fmt.Errorf("gVisor's kernel: %s", reason)
	}
	if status, _ := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return runner.Exit{}, fmt.Errorf("gVisor's kernel was ended by signal %d", status.Signal())
	}
	return gvisor.Exit(state.ExitCode(), p.Guest), nil
}

// Close kills the sandbox and removes everything that Start created except the files in
// StateDir. The caller must remove these.
func (p *process) Close() error {
	p.closeOnce.Do(func() { p.closeErr = p.close() })
	return p.closeErr
}

func (p *process) close() error {
	var errs []error
	if p.Process != nil {
		errs = append(errs, p.Kill())
		<-p.Done()
		<-p.watched
	}
	closeAll(append(p.theirs, p.stdin, p.stdout, p.stderr, p.started))
	if p.listener != nil {
		p.listener.Close()
	}
	if p.broker != nil {
		p.broker.Close()
	}
	for _, server := range p.live {
		server.Close()
	}
	if p.forks != nil {
		p.forks.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return errors.Join(append(errs, p.RemoveGroup(ctx))...)
}

// closeAll closes pipes. A pipe that is closed already is as closed as wanted.
func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
