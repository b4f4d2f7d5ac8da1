package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Approvals has the open questions to people. *approval.Desk implements it and documents the contract.
type Approvals interface {
	Posted() []approval.Posted
	Find(id string) (approval.Posted, approval.Asking, error)
	Answer(approval.Response) error
	Grants(ctx context.Context) ([]approval.Grant, error)
	Withdraw(ctx context.Context, id, by string, may func(approval.Grant) bool) (bool, error)
}

func (h *handler) approvalRoutes() {
	h.route("GET /v1/approvals", people(h.listApprovals), "since", "until")
	h.route("GET /v1/approvals/{approval}", people(h.showApproval))
	h.route("POST /v1/approvals/{approval}", people(h.answerApproval))
	h.route("GET /v1/approvals/{approval}/coverage", people(h.coverage))
	h.route("GET /v1/grants", people(h.listGrants), "since", "until")
	h.route("DELETE /v1/grants/{grant}", people(h.withdrawGrant))
}

// people returns an endpoint for people who may answer questions. Agents may not.
func people(do endpoint) endpoint {
	return func(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
		if who.Kind == caller.Agent || !who.Has(caller.ScopeApprove) {
			return 0, nil, needs(caller.ScopeApprove, who)
		}
		return do(ctx, who, r)
	}
}

// shownApproval is a question as the caller sees it.
type shownApproval struct {
	approval.Question
	Digest   string `json:"digest"`             // an answer must contain it
	Progress string `json:"progress,omitempty"` // the approvals so far
	// Escalated is the role that may answer in place of the owner.
	Escalated string `json:"escalated,omitempty"`
	Asks      string `json:"asks,omitempty"` // who must approve it, if not the owner
	// Suspended is since when the run waits without a sandbox. It is missing for a run of another node.
	Suspended time.Time `json:"suspended_since,omitzero"`
}

func (h *handler) shownAs(q approval.Posted) shownApproval {
	q.Desk = ""
	shown := shownApproval{q.Question, q.Digest, q.Progress, q.Escalated, q.Whom(), time.Time{}}
	if h.opts.SuspendedSince != nil {
		shown.Suspended = h.opts.SuspendedSince(q.RunID)
	}
	return shown
}

func (h *handler) listApprovals(_ context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	asked, err := period(r)
	if err != nil {
		return 0, nil, err
	}
	list := []shownApproval{}
	for _, q := range h.opts.Approvals.Posted() {
		if asked.Contains(q.Asked) && who.May(caller.People, caller.See, q.Object(q.Roles())) {
			q.Code, q.Arguments, q.Elicitation = "", nil, nil
			list = append(list, h.shownAs(q))
		}
	}
	return http.StatusOK, listed("approvals", list, h.opts.Silent(), ""), nil
}

// findApproval returns the open question of a request. A question that the caller may not answer is not found.
func (h *handler) findApproval(who caller.Caller, r *http.Request) (approval.Posted, error) {
	q, asking, err := h.opts.Approvals.Find(r.PathValue("approval"))
	if asking.Principal == "" || !who.May(caller.People, caller.Change, asking.Object(strings.Fields(asking.Roles))) {
		return q, &refusal{status: http.StatusNotFound, code: "not_found", message: "there is no such question"}
	}
	return q, refusedAnswer(err)
}

func (h *handler) showApproval(_ context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	q, err := h.findApproval(who, r)
	return http.StatusOK, h.shownAs(q), err
}

// approvalAnswer is the body of an answer.
type approvalAnswer struct {
	Decision string `json:"decision"`
	Digest   string `json:"digest"` // of the question that the person has seen
	For      string `json:"for"`    // as approval.ParseExtent reads it
	Reason   string `json:"reason"`
}

func (h *handler) answerApproval(_ context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	var answered approvalAnswer
	if err := body(r, &answered); err != nil {
		return 0, nil, err
	}
	q, err := h.findApproval(who, r)
	if err != nil {
		return 0, nil, err
	}
	response := approval.Answering(who, q, "API")
	response.Digest = answered.Digest
	switch answered.Decision {
	case "approve":
		response.Approve = true
		if response.For, err = approval.ParseExtent(answered.For, time.Now()); err != nil {
			return 0, nil, refusedAnswer(err)
		}
	case "deny":
		response.Reason = answered.Reason
	default:
		return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request",
			message: "decision is approve or deny"}
	}
	if err := refusedAnswer(h.opts.Approvals.Answer(response)); err != nil {
		return 0, nil, err
	}
	done := map[string]any{"id": q.ID, "decision": answered.Decision}
	if response.Approve {
		done["for"] = response.For.String()
		if now, _, err := h.opts.Approvals.Find(q.ID); err == nil { // other people have to approve, too
			done["waits"] = now.Progress
		}
	}
	return http.StatusOK, done, nil
}

// refusedAnswer returns the refusal for an error of the desk.
func refusedAnswer(err error) error {
	no := &refusal{status: http.StatusForbidden, code: "forbidden"}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, approval.ErrClosed):
		no.status, no.code = http.StatusConflict, "closed"
	case errors.Is(err, approval.ErrChanged):
		no.status, no.code = http.StatusConflict, "changed"
	case errors.Is(err, approval.ErrNeedsValues), errors.Is(err, approval.ErrExtent):
		no.status, no.code = http.StatusUnprocessableEntity, "invalid_request"
	case errors.Is(err, approval.ErrNotAsked), errors.Is(err, approval.ErrAgreed), errors.Is(err, approval.ErrNoPerson),
		errors.Is(err, approval.ErrOwn):
	default:
		return err
	}
	no.message = err.Error()
	return no
}

func (h *handler) coverage(_ context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	q, err := h.findApproval(who, r)
	switch {
	case err != nil:
		return 0, nil, err
	case q.Elicitation != nil || q.ServerID == "" || h.opts.Coverage == nil:
		return 0, nil, &refusal{status: http.StatusNotFound, code: "not_found",
			message: "the question is not about a call of a tool"}
	case !h.reading.TryLock():
		return 0, nil, &refusal{status: http.StatusServiceUnavailable, code: "unavailable",
			message: "the log is being read already", retryAfter: 1}
	}
	defer h.reading.Unlock()
	covered, err := h.opts.Coverage(who, q.Question)
	if errors.Is(err, admission.ErrSecret) {
		err = &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: err.Error()}
	}
	return http.StatusOK, covered, err
}

func (h *handler) listGrants(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	given, err := period(r)
	if err != nil {
		return 0, nil, err
	}
	list, err := h.opts.Approvals.Grants(ctx)
	list = slices.DeleteFunc(list, func(g approval.Grant) bool { return !given.Contains(g.Given) || !g.MayEnd(who) })
	return http.StatusOK, map[string]any{"grants": list}, err
}

func (h *handler) withdrawGrant(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	id := r.PathValue("grant")
	withdrawn, err := h.opts.Approvals.Withdraw(ctx, id, who.Name()+", API",
		func(g approval.Grant) bool { return g.MayEnd(who) })
	if err == nil && !withdrawn {
		err = &refusal{status: http.StatusNotFound, code: "not_found", message: "there is no such grant"}
	}
	return http.StatusOK, map[string]string{"id": id}, err
}
