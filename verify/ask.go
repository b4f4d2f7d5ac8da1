package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
	"github.com/airlock-mcp/airlock/runner"
)

// The methods of the socket of a sandbox with engines, which is that of docs/socket.md
// in all else.
const (
	methodStart  = "verify/start"  // {} → {"request": text, "seconds": number}; once
	methodFinish = "verify/finish" // {"verdict": text} → {}; the first one counts
)

// margin is subtracted from a request's time limit for its engine, so that the engine's
// verdict on the time limit, which is more specific, arrives before the host's.
const margin = time.Second

// question is one request on its way to the guest of one sandbox.
type question struct {
	text     string // the request in JSON
	seconds  float64
	handed   atomic.Bool
	finished chan string // holds the one answer that counts
}

// ask sends the request to the sandbox's guest and returns its verdict.
func (s *Service) ask(ctx context.Context, sandbox *runner.Sandbox, r Request) (Verdict, error) {
	limit := s.opts.Timeout
	if r.Timeout > 0 {
		limit = min(limit, r.Timeout)
	}
	q := &question{text: r.text(), seconds: (limit - min(margin, limit/10)).Seconds(), finished: make(chan string, 1)}
	over := time.NewTimer(limit)
	defer over.Stop()
	if err := sandbox.Begin(); err != nil {
		return Verdict{}, err
	}
	serving, stop := context.WithCancel(ctx)
	socket := make(chan error, 1)
	// Both methods in turn: the guest asks for nothing else.
	go func() { socket <- wire.Serve(serving, sandbox.Listener(), q.handle, methodStart, methodFinish) }()
	exited := make(chan exit, 1)
	go func() {
		status, err := sandbox.Wait(serving)
		exited <- exit{status, err}
	}()
	served := false
	defer func() {
		stop()
		if !served {
			<-socket
		}
	}()
	select {
	case answer := <-q.finished:
		return parse(r.Engine, answer), nil
	case err := <-socket:
		served = true
		return q.broken(ctx, r.Engine, err)
	case end := <-exited:
		stop()
		err := <-socket
		served = true
		return q.ended(ctx, sandbox, r.Engine, end, err)
	case <-sandbox.Flooded():
		return inconclusive(r.Engine, "the engine wrote more output than it may", nil), nil
	case <-over.C:
		s.kill(ctx, sandbox)
		return inconclusive(r.Engine, fmt.Sprintf("not decided within %v", limit),
			map[string]any{"limit_seconds": limit.Seconds()}), nil
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

// exit is how waiting for the guest's process ended.
type exit struct {
	status runner.Exit
	err    error
}

// handle answers the guest. An error ends the conversation.
func (q *question) handle(_ context.Context, req wire.Request) (any, error) {
	switch req.Method {
	case methodStart:
		if err := strictjson.Unmarshal(req.Params, &struct{}{}); err != nil || q.handed.Swap(true) {
			return nil, wire.Violation("%s was sent twice or with params", methodStart)
		}
		return map[string]any{"request": q.text, "seconds": q.seconds}, nil
	case methodFinish:
		var delivered struct {
			Verdict string `json:"verdict"`
		}
		if err := strictjson.Unmarshal(req.Params, &delivered); err != nil {
			return nil, wire.Violation("%s has wrong params: %v", methodFinish, err)
		}
		select {
		case q.finished <- delivered.Verdict:
		default: // the first one counts
		}
		return struct{}{}, nil
	}
	return nil, wire.Violation("the method %.40q is unknown", req.Method)
}

// ended returns the verdict for a guest that has ended. An answer that arrived with the
// end counts.
func (q *question) ended(ctx context.Context, sandbox *runner.Sandbox, engine string, end exit, served error) (Verdict,
	error) {
	var violation *wire.ProtocolError
	switch {
	case len(q.finished) > 0 || ctx.Err() != nil || errors.As(served, &violation):
		return q.broken(ctx, engine, served)
	case end.err != nil:
		return Verdict{}, end.err
	}
	reason := end.status.Reason
	if reason == runner.ReasonNone {
		reason = sandbox.LimitMet()
	}
	switch reason {
	case runner.ReasonMemory:
		return inconclusive(engine, "the engine needed more memory than it may use", nil), nil
	case runner.ReasonProcesses:
		return inconclusive(engine, "the engine needed more threads than it may use", nil), nil
	case runner.ReasonDisk:
		return inconclusive(engine, "the engine needed more disk than it may use", nil), nil
	}
	return inconclusive(engine, "the engine ended without a verdict", nil), nil
}

// broken returns the verdict for a request whose connection to the guest failed.
func (q *question) broken(ctx context.Context, engine string, err error) (Verdict, error) {
	select {
	case answer := <-q.finished:
		return parse(engine, answer), nil
	default:
	}
	var violation *wire.ProtocolError
	switch {
	case ctx.Err() != nil:
		return Verdict{}, context.Cause(ctx)
	case errors.As(err, &violation):
		return inconclusive(engine, "the answer of the engine is not a verdict", nil), nil
	case err == nil:
		err = errors.New("the sandbox's socket closed")
	}
	return Verdict{}, err
}

// kill ends the sandbox of an engine that does not end by itself.
func (s *Service) kill(ctx context.Context, sandbox *runner.Sandbox) {
	if err := sandbox.Kill(); err != nil {
		// The verdict stands; closing the sandbox tries again.
		s.opts.Logger.WarnContext(ctx, "the sandbox of a verification could not be killed",
			slog.String(telemetry.KeySandbox, sandbox.ID()), slog.Any(telemetry.KeyError, err))
	}
}
