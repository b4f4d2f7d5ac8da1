package ctrd

import (
	"context"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/airlock-mcp/airlock/runner"
)

var _ runner.Pauser = (*process)(nil)

// Pause has gVisor's kernel stop all tasks, and waits until they have stopped.
func (p *process) Pause(ctx context.Context) error {
	_, err := p.daemon.client.TaskService().Pause(ctx, &tasks.PauseTaskRequest{ContainerID: p.spec.ID})
	return errgrpc.ToNative(err)
}

// Resume lets all tasks go on.
func (p *process) Resume(ctx context.Context) error {
	_, err := p.daemon.client.TaskService().Resume(ctx, &tasks.ResumeTaskRequest{ContainerID: p.spec.ID})
	return errgrpc.ToNative(err)
}
