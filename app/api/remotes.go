package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// Remotes manages the agents that are registered elsewhere and pinned here. It is implemented by
// iatp.Service, which documents the errors.
type Remotes interface {
	Remotes(ctx context.Context, after string, n int) ([]iatp.Remote, error)
	Remote(ctx context.Context, agent string) (iatp.Remote, error)
	ChangeRemote(ctx context.Context, agent string, c iatp.RemoteChange, by string) (iatp.Remote, error)
	Unpin(ctx context.Context, agent, by string) error
}

func (h *handler) remoteRoutes() {
	h.route("GET /v1/remote-agents", remote(caller.See, h.listRemotes), "after", "limit")
	h.route("GET /v1/remote-agents/{agent}", remote(caller.See, h.showRemote))
	h.route("PATCH /v1/remote-agents/{agent}", remote(caller.Change, h.changeRemote))
	h.route("DELETE /v1/remote-agents/{agent}", remote(caller.Change, h.unpinRemote))
}

// remote returns an endpoint for the callers that may do an act with remote agents. They belong to
// the installation, so a caller with a profile reaches none.
func remote(act caller.Act, do endpoint) endpoint {
	return func(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
		scope := caller.ScopeFor(act, caller.Remote)
		switch {
		case who.Kind == caller.Agent || !who.Has(scope):
			return 0, nil, needs(scope, who)
		case !who.May(caller.People, act, caller.Object{Kind: caller.Remote}):
			return 0, nil, &refusal{status: http.StatusForbidden, code: "forbidden",
				message: "your token is for one profile, and remote agents belong to the whole installation"}
		}
		status, body, err := do(ctx, who, r)
		var no *iatp.Refusal
		switch {
		case errors.Is(err, iatp.ErrNotPinned):
			err = &refusal{status: http.StatusNotFound, code: "not_found", message: "there is no such remote agent"}
		case errors.As(err, &no):
			err = &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: no.Text}
		}
		return status, body, err
	}
}

func (h *handler) listRemotes(ctx context.Context, _ caller.Caller, r *http.Request) (int, any, error) {
	limit, err := number(r, "limit", 100, maxPage)
	if err != nil {
		return 0, nil, err
	}
	list, err := h.opts.Remotes.Remotes(ctx, r.URL.Query().Get("after"), limit)
	return http.StatusOK, map[string]any{"agents": list}, err
}

func (h *handler) showRemote(ctx context.Context, _ caller.Caller, r *http.Request) (int, any, error) {
	found, err := h.opts.Remotes.Remote(ctx, r.PathValue("agent"))
	return http.StatusOK, found, err
}

func (h *handler) changeRemote(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	var change iatp.RemoteChange
	if err := body(r, &change); err != nil {
		return 0, nil, err
	}
	changed, err := h.opts.Remotes.ChangeRemote(ctx, r.PathValue("agent"), change, who.Name())
	return http.StatusOK, changed, err
}

func (h *handler) unpinRemote(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	agent := r.PathValue("agent")
	err := h.opts.Remotes.Unpin(ctx, agent, who.Name())
	return http.StatusOK, map[string]string{"agent_id": agent}, err
}
