package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/verify"
)

// Verifications passes the questions of callers to the engines, and records them. It is safe
// for concurrent use. Its errors are verify.ErrBusy, verify.ErrClosed, the context's, or the
// reason why no engine is available. An error may have a method Hint() string with a fix.
type Verifications interface {
	Verify(ctx context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error)
}

// questions are the engines that callers can ask, with the members of a question. An agent needs
// the engine in its allowed_engines, except for the two that call others.
var questions = map[string][]member{
	autoEngine: {text("query")},
	"math":     {text("expression")},
	"logic":    {text("query")},
	"code":     {text("code"), optional("language", isText)},
	"sql": {text("query"), optional("schema_ddl", isText), optional("dialect", isText),
		optional("allowed_tables", isTexts), optional("allow_mutations", isFlag)},
	"fact":      {text("claim"), text("context")},
	"stats":     {text("query"), text("csv_text")},
	"image":     {text("claim"), text("image_base64")},
	"consensus": {text("query"), optional("mode", isText), optional("min_confidence", isNumber)},
	batchEngine: {{"items", isList, true}},
}

func (h *handler) verifyRoutes() {
	for engine := range questions {
		h.route("POST /v1/verify/"+questionOf(engine), h.verify(engine))
	}
}

// member is a member that a question may have.
type member struct {
	name   string
	kind   kind
	needed bool
}

func text(name string) member                { return member{name, isText, true} }
func optional(name string, kind kind) member { return member{name, kind, false} }

// kind is the required type of a member.
type kind struct {
	name string
	is   func(raw json.RawMessage) bool
}

var (
	isText   = kind{"a text", decodes[string]}
	isTexts  = kind{"a list of texts", decodes[[]string]}
	isList   = kind{"a list of objects", decodes[[]map[string]json.RawMessage]}
	isNumber = kind{"a number", decodes[float64]}
	isFlag   = kind{"true or false", decodes[bool]}
)

func decodes[T any](raw json.RawMessage) bool {
	var value T
	return strictjson.UnmarshalOpen(raw, &value) == nil
}

// verify answers a question to an engine with its verdict.
func (h *handler) verify(engine string) endpoint {
	return func(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
		if !auth.Has(who, auth.ScopeVerify) && !auth.Has(who, auth.ScopeRun) {
			return 0, nil, needs(auth.ScopeVerify, who)
		}
		if h.opts.Verifications == nil {
			return 0, nil, &refusal{status: http.StatusServiceUnavailable, code: "unavailable",
				message: "this server verifies nothing"}
		}
		unit, err := h.verifications.Take(who.Account(), 1) // before the body is read
		if err != nil {
			return 0, nil, refusedBy(ctx, err)
		}
		defer unit.Release()
		var given map[string]json.RawMessage
		if err := body(r, &given); err != nil {
			return 0, nil, err
		}
		arguments, err := argumentsOf(given, questions[engine])
		if err != nil {
			return 0, nil, err
		}
		end, err := h.decide(ctx, who, verificationOf(engine, arguments))
		if err != nil {
			return 0, nil, err
		}
		verdict, err := h.opts.Verifications.Verify(ctx, who, verify.Request{Engine: engine, Arguments: arguments})
		end(err == nil || errors.Is(err, verify.ErrInterrupted))
		if err != nil {
			return 0, nil, noVerdict(err)
		}
		return http.StatusOK, verdict.Body, nil
	}
}

// argumentsOf checks the members of a question and returns them as arguments of the engine. null
// means absent.
func argumentsOf(given map[string]json.RawMessage, members []member) (json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	for _, m := range members {
		value, there := given[m.name]
		delete(given, m.name)
		switch {
		case !there || string(value) == "null":
			if m.needed {
				return nil, malformed(fmt.Sprintf("the member %q is missing: it is %s", m.name, m.kind.name))
			}
		case !m.kind.is(value):
			return nil, malformed(fmt.Sprintf("the member %q is not %s", m.name, m.kind.name))
		default:
			arguments[m.name] = value
		}
	}
	for name := range given {
		return nil, malformed(fmt.Sprintf("there is no member %.40q", name))
	}
	return json.Marshal(arguments)
}

func malformed(sentence string) error {
	return &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: sentence}
}

// noVerdict returns the error for a question without a verdict. It is a refusal if the caller
// can do something about the cause.
func noVerdict(err error) error {
	var advised interface {
		error
		Hint() string
	}
	switch {
	case errors.Is(err, verify.ErrBusy):
		return &refusal{http.StatusServiceUnavailable, "busy", "too many verifications wait already: send it again", 1}
	case errors.Is(err, verify.ErrClosed):
		return &refusal{http.StatusServiceUnavailable, "unavailable", "the server is ending: send it again", 1}
	case errors.As(err, &advised):
		return &refusal{status: http.StatusServiceUnavailable, code: "unavailable",
			message: "this server cannot verify now: " + advised.Hint()}
	}
	return err
}
