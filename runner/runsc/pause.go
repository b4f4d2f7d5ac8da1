package runsc

import (
	"context"

	"github.com/airlock-mcp/airlock/runner"
)

var _ runner.Pauser = (*process)(nil)

// Pause has gVisor's kernel stop all tasks, and waits until they have stopped.
func (p *process) Pause(ctx context.Context) error { return p.order(ctx, methodPause) }

// Resume has gVisor's kernel let them go on.
func (p *process) Resume(ctx context.Context) error { return p.order(ctx, methodResume) }

// order calls a method of the kernel that takes nothing.
func (p *process) order(ctx context.Context, method string) error {
	kernel, err := p.dial()
	if err != nil {
		return err
	}
	defer kernel.close()
	return kernel.call(ctx, method, nil)
}
