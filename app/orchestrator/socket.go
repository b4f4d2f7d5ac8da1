package orchestrator

import (
	"context"
	"encoding/json"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// The methods of the socket; docs/socket.md describes them.
const (
	methodStart     = "run/start"
	methodFinish    = "run/finish"
	methodInterrupt = "run/interrupt"
	methodCall      = "tools/call"
	methodSearch    = "catalog/search"
	methodGet       = "catalog/get"
	methodResources = "catalog/resources"
	methodAttach    = "run/attach"
	methodLoad      = "session/load"
	methodSave      = "session/save"
	methodResult    = "session/result"
)

// finish is the message that the guest sends when the code has ended.
type finish struct {
	OK        bool            `json:"ok"`
	HasResult bool            `json:"has_result"`
	Data      json.RawMessage `json:"data"`
	Error     *guestError     `json:"error"`
	ExitCode  int             `json:"exit_code"`
	Note      string          `json:"note"` // why there is no result, or an undefined one
}

// guestError is the guest's description of a failure. It is trusted no further than the
// code: see believe.
type guestError struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Retryable bool   `json:"retryable"` // ignored
	Source    string `json:"source"`    // ignored
	CallID    string `json:"call_id"`   // of the failed call that ended the code
}

// handle answers one request from inside. An error ends the run.
func (r *run) handle(ctx context.Context, req wire.Request) (any, error) {
	switch req.Method {
	case methodStart:
		return r.handleStart(req)
	case methodFinish:
		return r.handleFinish(req)
	case methodInterrupt:
		return r.handleInterrupt(req)
	case methodCall:
		return r.handleCall(ctx, req)
	case methodSearch:
		return r.handleSearch(ctx, req)
	case methodGet:
		return r.handleGet(ctx, req)
	case methodResources:
		return r.handleResources(ctx, req)
	case methodAttach:
		return r.handleAttach(ctx, req)
	case methodLoad:
		return r.handleLoad(req)
	case methodSave:
		return r.handleSave(ctx, req)
	case methodResult:
		return r.handleResult(ctx, req)
	}
	return nil, wire.Violation("the method %.40q is unknown", req.Method)
}

func (r *run) handleStart(req wire.Request) (any, error) {
	if err := decode(req, &struct{}{}); err != nil {
		return nil, err
	}
	if r.guest.handedOut.Swap(true) {
		return nil, wire.Violation("%s was sent twice", methodStart)
	}
	if err := r.unrecorded(); err != nil {
		return nil, err
	}
	if r.request.Script != nil {
		return startAnswer{Language: "python", Code: string(r.request.Code), Script: true}, nil
	}
	return startAnswer{Language: r.request.Language, Code: string(r.request.Code), Session: r.keptSession()}, nil
}

// startAnswer is the answer to the guest's request for the code.
type startAnswer struct {
	Language string       `json:"language"`
	Code     string       `json:"code"`
	Session  *keptSession `json:"session,omitempty"` // absent: nothing is kept for later runs
	Script   bool         `json:"script,omitempty"`  // the code is run as it is, and has no result
}

func (r *run) handleFinish(req wire.Request) (any, error) {
	var delivered finish
	if err := decode(req, &delivered); err != nil {
		return nil, err
	}
	if !delivered.OK && delivered.Error == nil {
		return nil, wire.Violation("%s says neither a result nor an error", methodFinish)
	}
	select {
	case r.guest.finished <- delivered:
	default: // the first one counts
	}
	return struct{}{}, nil
}

// lasting is the part of an answer that releases its share of the run's limits when the
// code has read it.
type lasting struct{ read func() }

// Left is called when the answer has left.
func (l lasting) Left() { l.read() }

var _ wire.Lasting = lasting{}

func (r *run) handleSearch(ctx context.Context, req wire.Request) (any, error) {
	var params struct {
		Query    string `json:"query"`
		ServerID string `json:"server_id"`
		Detail   string `json:"detail"`
		Limit    int    `json:"limit"`
	}
	if err := decode(req, &params); err != nil {
		return nil, err
	}
	done, refused := r.calls.Look(ctx)
	if refused != nil {
		return refusedSearch(refused), nil
	}
	answer := Search(r.snapshot, params.Query, params.ServerID, params.Detail, params.Limit)
	if answer.Error != nil {
		answer.Error = r.calls.Tell(*answer.Error)
	}
	return struct {
		SearchAnswer
		lasting
	}{answer, lasting{done}}, nil
}

func (r *run) handleGet(ctx context.Context, req wire.Request) (any, error) {
	var params struct {
		ServerID string `json:"server_id"`
		Name     string `json:"name"`
	}
	if err := decode(req, &params); err != nil {
		return nil, err
	}
	done, refused := r.calls.Look(ctx)
	if refused != nil {
		return DefinitionAnswer{Error: refused}, nil
	}
	answer := Definition(r.snapshot, params.ServerID, params.Name)
	if answer.Error != nil {
		answer.Error = r.calls.Tell(*answer.Error)
	}
	return struct {
		DefinitionAnswer
		lasting
	}{answer, lasting{done}}, nil
}

func decode(req wire.Request, params any) error {
	if err := strictjson.Unmarshal(req.Params, params); err != nil {
		return wire.Violation("%s has wrong params: %v", req.Method, err)
	}
	return nil
}
