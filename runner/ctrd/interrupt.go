package ctrd

import (
	"context"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
)

var _ runner.Interrupter = (*process)(nil)

// Interrupt has the shim send the signal.
func (p *process) Interrupt(ctx context.Context) error {
	_, err := p.daemon.client.TaskService().Kill(ctx,
		&tasks.KillRequest{ContainerID: p.spec.ID, Signal: uint32(unix.SIGUSR1)})
	return errgrpc.ToNative(err)
}
