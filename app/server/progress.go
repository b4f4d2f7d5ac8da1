package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// progressEvery is how often a host that asked for progress hears of a run.
const progressEvery = time.Second

// reportProgress tells the host, when it gave a progress token, every second
// that the run still goes on; many hosts extend their own time limit at that.
// The returned function ends it and must be called.
func (s *Server) reportProgress(ctx context.Context, req *mcp.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for elapsed := 1; ; elapsed++ {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(elapsed), Message: fmt.Sprintf("running for %d s", elapsed),
			})
			if err != nil {
				s.logger.DebugContext(ctx, "progress could not be sent", slog.Any(telemetry.KeyError, err))
				return
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}
