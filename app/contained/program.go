package contained

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// program is a server in its sandbox.
type program struct {
	*runner.Program
	undo  cleanup.Stack
	state *state
	log   *slog.Logger
}

var _ upstream.Program = (*program)(nil)

// Wait implements upstream.Program.
func (p *program) Wait() string {
	ctx := context.Background() // the end is certain: Signal kills
	exit, err := p.Program.Wait(ctx)
	p.state.ended(p.Program)
	if closeErr := p.undo.Run(); closeErr != nil {
		p.log.ErrorContext(ctx, "the sandbox of a server could not be removed",
			slog.String(telemetry.KeySandbox, p.ID()), slog.Any(telemetry.KeyError, closeErr))
	}
	switch {
	case err != nil:
		return "was ended: " + err.Error()
	case exit.Reason == runner.ReasonMemory:
		return "was ended at its limit of memory (servers.NAME.sandbox.memory)"
	case exit.Reason == runner.ReasonProcesses:
		return "was ended at its limit of processes (servers.NAME.sandbox.pids)"
	case exit.Signal != 0:
		return fmt.Sprintf("was ended by signal %d (%s)", exit.Signal, syscall.Signal(exit.Signal))
	}
	return fmt.Sprintf("exited with status %d", exit.Code)
}

// Signal implements upstream.Program. Every signal kills: the server has seen the end of its input before.
func (p *program) Signal(syscall.Signal) bool {
	err := p.Kill()
	return err == nil || !errors.Is(err, syscall.ESRCH)
}
