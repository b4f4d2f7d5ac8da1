package api

import (
	"context"
	"net/http"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// signalAgent changes the state of an agent: SIGSTOP, SIGCONT or SIGKILL.
func (h *handler) signalAgent(ctx context.Context, who caller.Caller, agent agents.Agent, r *http.Request) (int, any, error) {
	var request struct {
		Signal agents.Signal `json:"signal"`
	}
	if err := body(r, &request); err != nil {
		return 0, nil, err
	}
	status, ok := request.Signal.Status()
	if !ok {
		return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: "signal is one of SIGSTOP, SIGCONT and SIGKILL"}
	}
	if agent.Status == agents.Killed && status != agents.Killed {
		return 0, nil, &refusal{status: http.StatusConflict, code: "killed", message: "a killed agent does not come back: register a new one"}
	}
	err := h.opts.Agents.SetStatus(ctx, agent.ID, status, who.Name())
	return http.StatusOK, map[string]any{"agent_id": agent.ID, "status": status}, err
}
