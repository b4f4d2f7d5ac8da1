package api

import (
	"context"
	"net/http"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// signalAgent changes the state of an agent: SIGSTOP, SIGCONT or SIGKILL.
func (h *handler) signalAgent(ctx context.Context, who caller.Caller, agent agents.Agent, r *http.Request) (int, any,
	error) {
	var request struct {
		Signal agents.Signal `json:"signal"`
	}
	if err := body(r, &request); err != nil {
		return 0, nil, err
	}
	status, ok := request.Signal.Status()
	if !ok {
		return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request",
			message: "signal is one of SIGSTOP, SIGCONT and SIGKILL"}
	}
	return h.setStatus(ctx, who, agent, status)
}
