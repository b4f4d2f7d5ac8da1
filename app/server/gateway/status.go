package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// status answers with the state of a job.
func (s *Server) status(ctx context.Context, who caller.Caller, id string) *mcp.CallToolResult {
	job, ok := s.parts.Jobs.Get(ctx, who, id)
	if !ok || job.State == runs.JobLost {
		res := result("Error: Job ID '" + id + "' not found or expired.")
		res.IsError = true
		if ok {
			res.Content = append(res.Content, text(
				"The server that ran it has ended while the job was "+string(job.Last)+
					" (run "+job.RunID+"), and its output is not kept. Start it again."))
		}
		return res
	}
	res := result(statusText(job, s.background))
	res.Meta = mcp.Meta{runKey: job.RunID, "io.github.airlock-mcp/state": job.State}
	return res
}

// dispatch is a job with the time of its request.
type dispatch struct {
	job string
	at  time.Time
}

// maxDispatched is the maximum number of requests of a session that are remembered so that the
// host can cancel them later. The oldest are evicted.
const maxDispatched = 256

// remember records the request that has begun a job.
func (s *Server) remember(who caller.Caller, requestID, job string) {
	if requestID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.dispatched[who.Session]
	if of == nil {
		of = map[string]dispatch{}
		s.dispatched[who.Session] = of
	}
	if len(of) == maxDispatched {
		var oldest string
		for id, d := range of {
			if oldest == "" || d.at.Before(of[oldest].at) {
				oldest = id
			}
		}
		delete(of, oldest)
	}
	of[requestID] = dispatch{job, time.Now()}
}

// cancel ends the job of a request when its host cancels the request, even though the request has
// already been answered.
func (s *Server) cancel(who caller.Caller, params *mcp.CancelledParams) {
	id, err := json.Marshal(params.RequestID)
	if err != nil || !who.Known() {
		return
	}
	s.mu.Lock()
	found, ok := s.dispatched[who.Session][string(id)]
	s.mu.Unlock()
	if ok {
		s.parts.Jobs.Cancel(who, found.job)
	}
}
