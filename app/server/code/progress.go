package code

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// progressEvery is how often a host that asked for progress is told of a run.
const progressEvery = time.Second

// reportProgress tells the host, when it gave a progress token, every second
// what the run does; many hosts extend their own time limit at that. That a
// person is awaited it tells at once. The returned function ends it and must be
// called.
func (s *Server) reportProgress(ctx context.Context, req *mcp.CallToolRequest, run *runs.Run) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	changed, unsubscribe := run.Subscribe()
	var reporting sync.WaitGroup
	reporting.Go(func() {
		defer unsubscribe()
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		asked := 0 // questions that were open when the host heard last
		for told := 1; ; told++ {
			status := run.Status()
			for tick := false; !tick && len(status.Questions) <= asked; {
				asked = min(asked, len(status.Questions))
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					tick = true
				case <-changed:
				}
				status = run.Status()
			}
			asked = len(status.Questions)
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(told), Message: standing(status, time.Now(), s.hostAsks(status.Owner.Kind, req)),
			})
			if err != nil {
				s.logger.DebugContext(ctx, "progress could not be sent", slog.Any(telemetry.KeyError, err))
				return
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait()
	}
}
