package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Agents manages the registered agents. It is implemented by access.Agents.
type Agents interface {
	Register(ctx context.Context, r agents.Registration, by string) (agents.Agent, secret.Value, error)
	Find(ctx context.Context, id string) (agents.Agent, error)
	List(ctx context.Context, only agents.Selection, after string, n int) ([]agents.Agent, error)
	Rotate(ctx context.Context, id, by string, with []caller.Credential) (secret.Value, error)
	SetStatus(ctx context.Context, id string, status agents.Status, by string) error
	Change(ctx context.Context, id string, c agents.Change, by string, allow func(before, after agents.Agent) error) (
		agents.Agent, error)
	Budget(ctx context.Context, id string) (budget.Standing, error)
	Activity(agentID string, period audit.Period, before uint64, n int) ([]agents.Entry, error)
}

func (h *handler) agentRoutes() {
	h.route("POST /v1/agents", h.registerAgent)
	h.route("GET /v1/agents", h.listAgents, "since", "until", "after", "limit")
	h.route("GET /v1/agents/{agent}", h.own(h.showAgent))
	h.route("PATCH /v1/agents/{agent}", h.managed(h.changeAgent))
	h.route("POST /v1/agents/{agent}/actions", h.own(h.verifyAction))
	h.route("POST /v1/agents/{agent}/tools/{tool}", h.own(h.verifyTool))
	h.route("GET /v1/agents/{agent}/budget", h.own(h.agentBudget))
	h.route("GET /v1/agents/{agent}/activity", h.own(h.agentActivity), "since", "until", "before", "limit")
	h.route("POST /v1/agents/{agent}/token", h.managed(h.rotateAgent))
	h.route("POST /v1/agents/{agent}/status", h.managed(h.setAgentStatus))
	h.route("POST /v1/agents/{agent}/signal", h.managed(h.signalAgent))
}

// agentEndpoint is an endpoint about one agent that the caller may see.
type agentEndpoint func(ctx context.Context, who caller.Caller, agent agents.Agent, r *http.Request) (status int,
	body any, err error)

var errNoAgent = &refusal{status: http.StatusNotFound, code: "not_found", message: "there is no such agent"}

// own returns an endpoint for the owner of an agent, the agent itself and administrators. For
// other callers the agent is not found.
func (h *handler) own(do agentEndpoint) endpoint {
	return func(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
		id := r.PathValue("agent")
		if who.Kind == caller.Agent && who.Principal != id {
			return 0, nil, errNoAgent
		}
		if who.Kind != caller.Agent && !auth.Has(who, auth.ScopeAgents) {
			return 0, nil, needs(auth.ScopeAgents, who)
		}
		agent, err := h.opts.Agents.Find(ctx, id)
		switch {
		case errors.Is(err, agents.ErrUnknown):
			return 0, nil, errNoAgent
		case err != nil:
			return 0, nil, err
		case !who.May(caller.People, caller.See, agent.Object()):
			return 0, nil, errNoAgent
		}
		return do(ctx, who, agent, r)
	}
}

// managed is own without the agent itself, because an agent must not manage itself.
func (h *handler) managed(do agentEndpoint) endpoint {
	own := h.own(do)
	return func(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
		if who.Kind == caller.Agent {
			return 0, nil, needs(auth.ScopeAgents, who)
		}
		return own(ctx, who, r)
	}
}

func needs(scope string, who caller.Caller) error { return &auth.ScopeError{Scope: scope, Caller: who} }

// registered is the answer to a registration.
type registered struct {
	agents.Agent
	Token string `json:"agent_token"` // shown this once
}

func (h *handler) registerAgent(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	if who.Kind == caller.Agent || !auth.Has(who, auth.ScopeAgents) {
		return 0, nil, needs(auth.ScopeAgents, who)
	}
	var registration agents.Registration
	if err := body(r, &registration); err != nil {
		return 0, nil, err
	}
	if registration.PrincipalID == "" {
		registration.PrincipalID = who.Name()
	}
	if err := registration.Check(); err != nil {
		return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: err.Error()}
	}
	if registration.PrincipalID != who.Name() { // the agent would use the rate and budget of that principal
		return 0, nil, &refusal{status: http.StatusForbidden, code: "forbidden",
			message: "principal_id can only be your own principal: leave it out"}
	}
	if err := auth.MayGrant(who, registration.Type); err != nil {
		return 0, nil, err
	}
	registration.Inherited = inheritedFrom(who)
	read, err := h.read(ctx, who)
	if err != nil {
		return 0, nil, err
	}
	agent, token, err := h.opts.Agents.Register(ctx, registration, who.Name())
	if err != nil {
		return 0, nil, err
	}
	if err := h.taint(ctx, agent, read); err != nil { // its token is not returned
		killing := h.opts.Agents.SetStatus(context.WithoutCancel(ctx), agent.ID, agents.Killed, who.Name())
		return 0, nil, errors.Join(err, killing)
	}
	return http.StatusCreated, registered{agent, token.Reveal()}, nil
}

// read returns the servers that the caller's conversation has read. It knows the token of an agent
// that it registers or whose token it rotates, so it can pass on what it has read.
func (h *handler) read(ctx context.Context, who caller.Caller) ([]string, error) {
	who.Lineage = who.CredentialLineage()
	servers, err := h.opts.Taint.Servers(ctx, who)
	if err != nil {
		return nil, fmt.Errorf("looking up what the conversation has read: %w", err)
	}
	return servers, nil
}

// taint records servers as read by an agent.
func (h *handler) taint(ctx context.Context, agent agents.Agent, servers []string) error {
	who := agent.Caller()
	who.Lineage = who.CredentialLineage()
	for _, server := range servers {
		if err := h.opts.Taint.Add(ctx, who, server); err != nil {
			return fmt.Errorf("recording what agent %q has read: %w", agent.ID, err)
		}
	}
	return nil
}

// inheritedFrom returns the properties that an agent inherits from its registrant.
func inheritedFrom(who caller.Caller) agents.Inherited {
	inherited := agents.Inherited{Profile: who.Profile, Credentials: who.Credentials,
		Expires: who.Expires(), Facts: who.Facts}
	for _, scope := range []string{auth.ScopeRun, auth.ScopeVerify} { // all that an agent can have
		if who.Has(scope) {
			inherited.Scopes = append(inherited.Scopes, scope)
		}
	}
	return inherited
}

// maxPage is the maximum number of agents in an answer.
const maxPage = 1000

func (h *handler) listAgents(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	if who.Kind == caller.Agent || !auth.Has(who, auth.ScopeAgents) {
		return 0, nil, needs(auth.ScopeAgents, who)
	}
	limit, err := number(r, "limit", 100, maxPage)
	if err != nil {
		return 0, nil, err
	}
	only := agents.SelectFor(who)
	if only.Created, err = period(r); err != nil {
		return 0, nil, err
	}
	list, err := h.opts.Agents.List(ctx, only, r.URL.Query().Get("after"), limit)
	return http.StatusOK, map[string]any{"agents": list}, err
}

// number reads a number from 1 to most from the query of the URL. It returns otherwise if the
// query does not contain it.
func number(r *http.Request, name string, otherwise, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request",
			message: fmt.Sprintf("%s is a number from 1 to %d", name, most)}
	}
	return n, nil
}

// period reads since and until from the query of the URL. Dates are days in UTC.
func period(r *http.Request) (audit.Period, error) {
	values := r.URL.Query()
	p, err := audit.ParsePeriod(values.Get("since"), values.Get("until"), time.Now().UTC())
	if err != nil {
		return p, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: err.Error()}
	}
	return p, nil
}

func (h *handler) showAgent(_ context.Context, _ caller.Caller, agent agents.Agent, _ *http.Request) (int, any, error) {
	return http.StatusOK, agent, nil
}

// announced is an action with its context.
type announced struct {
	Action  json.RawMessage `json:"action"`
	Context json.RawMessage `json:"context"`
}

func (h *handler) changeAgent(ctx context.Context, who caller.Caller, agent agents.Agent, r *http.Request) (int, any,
	error) {
	var change agents.Change
	if err := body(r, &change); err != nil {
		return 0, nil, err
	}
	changed, err := h.opts.Agents.Change(ctx, agent.ID, change, who.Name(), auth.MayChange(who))
	return http.StatusOK, changed, err
}

func (h *handler) verifyAction(ctx context.Context, _ caller.Caller, agent agents.Agent, r *http.Request) (int, any,
	error) {
	var request announced
	if err := body(r, &request); err != nil {
		return 0, nil, err
	}
	ruling, _, err := h.opts.Admission.Decide(ctx, admission.Act{Kind: admission.AnnouncedAction, Agent: agent.ID,
		Arguments: request.Action, Context: request.Context})
	return http.StatusOK, ruling, err
}

func (h *handler) verifyTool(ctx context.Context, _ caller.Caller, agent agents.Agent, r *http.Request) (int, any,
	error) {
	var request struct {
		Parameters json.RawMessage `json:"parameters"`
	}
	if err := body(r, &request); err != nil {
		return 0, nil, err
	}
	ruling, _, err := h.opts.Admission.Decide(ctx, admission.Act{Kind: admission.AnnouncedTool, Agent: agent.ID,
		Name: r.PathValue("tool"), Arguments: request.Parameters})
	if err != nil {
		return 0, nil, err
	}
	answer := toolRuling{Approved: ruling.Decision == admission.Approved, BlockedReason: ruling.Reason,
		RiskScore: ruling.Score, ApprovalID: ruling.ApprovalID}
	if why := ruling.Error; why != nil {
		if why.Reason == admission.Malformed {
			return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: why.Code, message: why.Message}
		}
		answer.BlockedReason, answer.Retryable = why.Message, why.Retryable
	}
	return http.StatusOK, answer, nil
}

// toolRuling is the decision whether an agent may use a tool.
type toolRuling struct {
	Approved bool `json:"approved"`
	// BlockedReason is a sentence, or empty if the tool is approved.
	BlockedReason string  `json:"blocked_reason,omitempty"`
	RiskScore     float64 `json:"risk_score"` // 0 to 1, in tenths
	// ApprovalID is the question that a person can answer. It is empty if approval is not possible.
	ApprovalID string `json:"approval_id,omitempty"`
	// Retryable is set if a person cannot be asked now, but possibly later.
	Retryable bool `json:"retryable,omitempty"`
}

// remaining is the budget of an agent in the format of the API.
type remaining struct {
	Cost struct {
		MaxDaily *budget.Amount `json:"max_daily_usd"`
		Daily    budget.Amount  `json:"current_daily_usd"`
	} `json:"cost"`
	Requests struct {
		MaxPerHour *int64 `json:"max_per_hour"`
		Hour       int64  `json:"current_hour"`
	} `json:"requests"`
}

func (h *handler) agentBudget(ctx context.Context, _ caller.Caller, agent agents.Agent, _ *http.Request) (int, any,
	error) {
	standing, err := h.opts.Agents.Budget(ctx, agent.ID)
	var b remaining
	b.Cost.MaxDaily, b.Cost.Daily = standing.Limits.DayCost, standing.Day.Cost
	b.Requests.MaxPerHour, b.Requests.Hour = standing.Limits.HourRequests, standing.Hour.Requests
	return http.StatusOK, b, err
}

func (h *handler) agentActivity(_ context.Context, _ caller.Caller, agent agents.Agent, r *http.Request) (int, any,
	error) {
	limit, err := number(r, "limit", 10, agents.MaxActivity)
	if err != nil {
		return 0, nil, err
	}
	before, err := number(r, "before", 0, 1<<53-1)
	if err != nil {
		return 0, nil, err
	}
	during, err := period(r)
	if err != nil {
		return 0, nil, err
	}
	entries, err := h.opts.Agents.Activity(agent.ID, during, uint64(before), limit)
	return http.StatusOK, map[string]any{"activity": entries}, err
}

func (h *handler) rotateAgent(ctx context.Context, who caller.Caller, agent agents.Agent, _ *http.Request) (int, any,
	error) {
	if err := auth.MayGrant(who, agent.Type); err != nil { // the caller gets the token of an agent of this type
		return 0, nil, err
	}
	for _, scope := range agent.Rights() { // the new token has the rights of the agent
		if !who.Has(scope) {
			return 0, nil, needs(scope, who)
		}
	}
	read, err := h.read(ctx, who)
	if err == nil {
		err = h.taint(ctx, agent, read)
	}
	if err != nil {
		return 0, nil, err
	}
	token, err := h.opts.Agents.Rotate(ctx, agent.ID, who.Name(), who.Credentials)
	return http.StatusOK, map[string]string{"agent_id": agent.ID, "agent_token": token.Reveal()}, err
}

func (h *handler) setAgentStatus(ctx context.Context, who caller.Caller, agent agents.Agent, r *http.Request) (int, any,
	error) {
	var request struct {
		Status agents.Status `json:"status"`
	}
	if err := body(r, &request); err != nil {
		return 0, nil, err
	}
	switch request.Status {
	case agents.Active, agents.Suspended, agents.Killed:
	default:
		return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request",
			message: "status is one of active, suspended and killed"}
	}
	return h.setStatus(ctx, who, agent, request.Status)
}

func (h *handler) setStatus(ctx context.Context, who caller.Caller, agent agents.Agent, status agents.Status) (int, any,
	error) {
	err := h.opts.Agents.SetStatus(ctx, agent.ID, status, who.Name())
	return http.StatusOK, map[string]any{"agent_id": agent.ID, "status": status}, err
}
