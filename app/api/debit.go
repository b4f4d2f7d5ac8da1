package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// The engines that call other engines, and the maximum number of items in a batch. The engine
// evaluates no item of a larger batch.
const (
	autoEngine  = "auto"
	batchEngine = "batch"
	maxItems    = 1000
)

// verificationOf returns a question to an engine with the names that permissions and prices of
// agents use.
func verificationOf(engine string, arguments json.RawMessage) admission.Act {
	act := admission.Act{Kind: admission.Verification, Name: "verify_" + questionOf(engine)}
	if engine != autoEngine && engine != batchEngine {
		act.Engine = engine
	}
	var batch struct {
		Items []map[string]json.RawMessage `json:"items"`
	}
	if engine != batchEngine || strictjson.UnmarshalOpen(arguments, &batch) != nil {
		return act
	}
	for _, item := range batch.Items[:min(len(batch.Items), maxItems)] {
		kind := autoEngine
		if given := item["type"]; given != nil && strictjson.UnmarshalOpen(given, &kind) != nil {
			kind = engine // the type is not a string: the engine reports that
		}
		act.Parts = append(act.Parts, "verify_"+questionOf(strings.ToLower(kind)))
	}
	return act
}

// questionOf returns the name of an engine in paths and in the types of actions.
func questionOf(engine string) string {
	if engine == autoEngine {
		return "natural_language"
	}
	return engine
}

// decide decides about a question to an engine, and debits it if the caller is an agent. The caller
// of decide must call end and pass whether an engine was asked.
func (h *handler) decide(ctx context.Context, who caller.Caller, act admission.Act) (end func(asked bool), err error) {
	act.Agent = admission.AgentOf(who)
	r, grant, err := h.opts.Admission.Decide(ctx, act)
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, refused(r)
	}
	return func(asked bool) {
		if err := grant.End(context.WithoutCancel(ctx), asked, 0); err != nil {
			h.opts.Logger.ErrorContext(ctx, "what an agent's verification was debited could not be returned",
				slog.Any(telemetry.KeyError, err))
		}
	}, nil
}

// refused returns the refusal for an agent that may not ask now. Its status is 429 if waiting
// helps.
func refused(d admission.Ruling) error {
	told := &refusal{status: http.StatusForbidden, code: "denied", message: d.Error.Error()}
	switch d.Error.Reason {
	case admission.OverBudget:
		told.code = "budget_exceeded"
		if d.RetryAt != nil {
			told.status = http.StatusTooManyRequests
			told.retryAfter = max(1, int(math.Ceil(time.Until(*d.RetryAt).Seconds())))
		}
	case admission.TooOften:
		told.status, told.code, told.retryAfter = http.StatusTooManyRequests, "rate_limited", 1
	case admission.NoRate:
		told.status, told.code, told.retryAfter = http.StatusServiceUnavailable, "unavailable", 1
	}
	return told
}
