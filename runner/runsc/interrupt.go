package runsc

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
)

var _ runner.Interrupter = (*process)(nil)

// signal is the argument of containerManager.Signal (gVisor, runsc/boot, SignalArgs).
// Without a process ID it goes to the thread group of the first process.
type signal struct {
	CID   string
	Signo int32
}

// Interrupt has gVisor's kernel send the signal.
func (p *process) Interrupt(ctx context.Context) error {
	kernel, err := p.dial()
	if err != nil {
		return err
	}
	defer kernel.close()
	return kernel.call(ctx, methodSignal, signal{CID: p.spec.ID, Signo: int32(unix.SIGUSR1)})
}
