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

// progressEvery is the interval of progress notifications.
const progressEvery = time.Second

// reportProgress sends a progress notification every second if the host gave a progress token.
// Many hosts extend their time limit on each notification. If the run starts to wait for a
// person, the notification is sent at once. The caller must call stop.
func (s *Server) reportProgress(ctx context.Context, req *mcp.CallToolRequest, run *runs.Run,
	notices *notices) (stop func()) {
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
		asked := 0 // open questions at the last notification
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
			message := standing(status, time.Now(), s.hostAsks(status.Owner.Kind, req))
			if status.State == runs.Running && asked == 0 {
				if detail := run.Progress(); detail != "" {
					message += ", " + detail
				}
				if detail := notices.ofCalls(); detail != "" {
					message += ", " + detail
				}
			}
			value := float64(told)
			if notices.direct { // the server's numbers follow
				value = 0
			}
			if err := notices.progress(ctx, value, 0, message); err != nil {
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
