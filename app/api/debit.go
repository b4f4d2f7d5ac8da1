package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
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
func verificationOf(engine, permission string, arguments json.RawMessage) agents.Verification {
	v := agents.Verification{Type: typeOf(engine), Engine: permission}
	var batch struct {
		Items []map[string]json.RawMessage `json:"items"`
	}
	if engine != batchEngine || strictjson.UnmarshalOpen(arguments, &batch) != nil {
		return v
	}
	for _, item := range batch.Items[:min(len(batch.Items), maxItems)] {
		kind := autoEngine
		if given := item["type"]; given != nil && strictjson.UnmarshalOpen(given, &kind) != nil {
			kind = engine // the type is not a string: the engine reports that
		}
		v.Parts = append(v.Parts, typeOf(strings.ToLower(kind)))
	}
	return v
}

func typeOf(engine string) string {
	if engine == autoEngine {
		engine = "natural_language"
	}
	return "verify_" + engine
}

// debit is the amount that was debited for a question of an agent. The zero value is for
// callers that are not agents.
type debit struct {
	of     *agents.Grant
	logger *slog.Logger
}

// debit decides whether an agent may ask, and debits the question from its budget. For other
// callers it does nothing.
func (h *handler) debit(ctx context.Context, who caller.Caller, v agents.Verification) (debit, error) {
	if who.Kind != caller.Agent {
		return debit{}, nil
	}
	r, err := h.opts.Agents.DecideVerification(ctx, who.Principal, v)
	if err != nil {
		return debit{}, err
	}
	if r.Error != nil {
		return debit{}, refused(r.Decision)
	}
	return debit{r.Grant, h.opts.Logger}, nil
}

// end refunds the debit of a question that reached no engine.
func (d debit) end(ctx context.Context, asked bool) {
	if d.of == nil {
		return
	}
	if err := d.of.End(context.WithoutCancel(ctx), asked, 0); err != nil {
		d.logger.ErrorContext(ctx, "what an agent's verification was debited could not be returned", slog.Any(telemetry.KeyError, err))
	}
}

// refused returns the refusal for an agent that may not ask now. Its status is 429 if waiting
// helps.
func refused(d agents.Decision) error {
	told := &refusal{status: http.StatusForbidden, code: "denied", message: d.Error.Error()}
	switch {
	case d.Decision == agents.BudgetExceeded:
		told.code = "budget_exceeded"
		if d.RetryAt != nil {
			told.status = http.StatusTooManyRequests
			told.retryAfter = max(1, int(math.Ceil(time.Until(*d.RetryAt).Seconds())))
		}
	case d.Error.Code == agents.CodeRate:
		told.status, told.code, told.retryAfter = http.StatusTooManyRequests, "rate_limited", 1
	case d.Error.Code == agents.CodeRateUnknown:
		told.status, told.code, told.retryAfter = http.StatusServiceUnavailable, "unavailable", 1
	}
	return told
}
