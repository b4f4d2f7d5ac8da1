// Package api is JSON over HTTP for the SDK, agents and scripts, under /v1. Its
// OpenAPI file describes all of it. The caller is authenticated before the rest of the
// request is read. Objects of other callers are answered with not found.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// maxBody is the maximum size of a request body in bytes.
const maxBody = 4 << 20

// maxQuestion is the maximum size of a question to an engine in bytes. It may contain a file.
const maxQuestion = 12 << 20

// Options are the options of New. Agents, Remotes, Taint, Admission, Approvals and Identify are required.
type Options struct {
	Agents    Agents
	Remotes   Remotes
	Taint     Taint // an agent starts with the servers that the conversation that registers it has read
	Admission *admission.Service
	Approvals Approvals
	// Silent returns the nodes of the cluster whose questions may be missing; nil: none.
	Silent func() []string
	Lists  Lists // nil: there are no lists of runs, servers and records
	// SuspendedSince returns since when a run waits without a sandbox, or zero; nil: none is known.
	SuspendedSince func(run string) time.Time
	// Coverage returns what an approval of the question's tool would have covered; nil: nobody knows.
	Coverage func(by caller.Caller, q approval.Question) (admission.Coverage, error)
	// Verifications ask the engines; nil: questions are refused.
	Verifications Verifications
	Identify      func(r *http.Request) (caller.Caller, error)
	// Refuse answers for an error of Identify, or of a caller who lacks a scope, as
	// auth.Authenticator.Refuse does; nil: without a word about where callers sign in.
	Refuse func(ctx context.Context, err error, path string) (auth.Refusal, bool)
	// Clean removes secrets from error messages, which repeat names and values of the request; nil: none.
	Clean  func(message string) string
	Logger *slog.Logger // nil discards
}

// Taint keeps the servers that conversations have read. *taint.Store implements it and documents the
// contract.
type Taint interface {
	Servers(ctx context.Context, who caller.Caller) ([]string, error)
	Add(ctx context.Context, who caller.Caller, server string) error
}

// handler serves /v1.
type handler struct {
	opts          Options
	mux           *http.ServeMux
	verifications *quota.Limiter
	reading       sync.Mutex // held while the audit log is read
}

// New returns the handler of requests under /v1.
func New(opts Options) http.Handler {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Clean == nil {
		opts.Clean = func(message string) string { return message }
	}
	if opts.Silent == nil {
		opts.Silent = func() []string { return nil }
	}
	if opts.Refuse == nil {
		opts.Refuse = (&auth.Authenticator{}).Refuse
	}
	h := &handler{opts: opts, mux: http.NewServeMux(), verifications: quota.New(quota.For(quota.Verifications))}
	h.mux.HandleFunc("GET /v1/openapi.json", h.openapi)
	h.agentRoutes()
	h.remoteRoutes()
	h.verifyRoutes()
	h.approvalRoutes()
	h.listRoutes()
	return h
}

// ServeHTTP answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.notRouted(w, r)
		return
	}
	most := int64(maxBody)
	if strings.HasPrefix(r.URL.Path, "/v1/verify/") {
		most = maxQuestion
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	h.mux.ServeHTTP(w, r)
}

// notRouted answers requests that match no route, in JSON like all other answers.
func (h *handler) notRouted(w http.ResponseWriter, r *http.Request) {
	record := &statusOnly{header: http.Header{}}
	h.mux.ServeHTTP(record, r)
	if record.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", record.header.Get("Allow"))
		problem.Write(w, http.StatusMethodNotAllowed, "method_not_allowed",
			"this path accepts only "+record.header.Get("Allow"))
		return
	}
	problem.Write(w, http.StatusNotFound, "not_found", "there is no such path; GET /v1/openapi.json lists them")
}

// statusOnly records the status of the mux's answer.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }

func answer(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
}

// endpoint answers a request of a known caller with a status and a body.
type endpoint func(ctx context.Context, who caller.Caller, r *http.Request) (status int, body any, err error)

// refusal is an error whose message is sent to the caller.
type refusal struct {
	status        int
	code, message string
	retryAfter    int // the Retry-After header in seconds; 0 omits it
}

func (r *refusal) Error() string { return r.message }

// refusedBy returns the refusal for an error of a limiter.
func refusedBy(ctx context.Context, err error) error {
	refused := (*quota.Refusal)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	refused.Count(ctx)
	status, code := problem.Refused(refused)
	return &refusal{status, code, refused.Error(), 1}
}

// route registers an endpoint for a pattern. Requests of callers that Identify does not accept
// are refused, and so are those with other parameters in the query of the URL than the named ones.
func (h *handler) route(pattern string, do endpoint, query ...string) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		who, err := h.opts.Identify(r)
		if err == nil && !who.Known() {
			err = auth.ErrInvalid
		}
		if err != nil {
			h.refuseUnknown(w, r, err)
			return
		}
		if err := checkQuery(r, query); err != nil {
			h.refuse(w, r, err)
			return
		}
		status, body, err := do(r.Context(), who, r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		answer(w, status, body)
	})
}

// checkQuery refuses a query that cannot be read, and one with an unknown or repeated parameter: without a misspelt
// filter, a list would have everything.
func checkQuery(r *http.Request, known []string) error {
	invalid := func(format string, args ...any) error {
		return &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request",
			message: fmt.Sprintf(format, args...)}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalid("the query of the URL cannot be read: write & between parameters, and %%XX for other characters")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case len(known) == 0:
			return invalid("this path has no parameters in the query of the URL, but the request has %q", name)
		case !slices.Contains(known, name):
			return invalid("the query of the URL has the unknown parameter %q; write %s", name,
				strings.Join(known, ", "))
		case len(values[name]) > 1:
			return invalid("the query of the URL has the parameter %q twice", name)
		}
	}
	return nil
}

// refuseUnknown answers a request whose caller may not make it, or could not be looked up.
func (h *handler) refuseUnknown(w http.ResponseWriter, r *http.Request, err error) {
	if refusal, ok := h.opts.Refuse(r.Context(), err, r.URL.Path); ok {
		refusal.Write(w)
		return
	}
	if r.Context().Err() == nil { // otherwise the client has disconnected
		h.opts.Logger.ErrorContext(r.Context(), "who sent a request of the API could not be looked up", "error", err)
	}
	w.Header().Set("Retry-After", "1")
	problem.Write(w, http.StatusServiceUnavailable, "unavailable",
		"the caller could not be identified now: send the request again")
}

// refuse answers with an error. Errors that are not meant for the caller are logged, and the
// answer is a fixed sentence.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if refusal, ok := h.opts.Refuse(r.Context(), err, r.URL.Path); ok {
		refusal.Write(w)
		return
	}
	var told *refusal
	var large *http.MaxBytesError
	var invalid *agents.InvalidError
	var more *auth.GrantError
	switch {
	case errors.As(err, &invalid):
		problem.Write(w, http.StatusUnprocessableEntity, "invalid_request", h.opts.Clean(err.Error()))
	case errors.As(err, &more):
		problem.Write(w, http.StatusForbidden, "forbidden", h.opts.Clean(err.Error()))
	case errors.Is(err, agents.ErrKilled):
		problem.Write(w, http.StatusConflict, "killed", "a killed agent does not come back: register a new one")
	case errors.As(err, &told):
		if told.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(told.retryAfter))
		}
		problem.Write(w, told.status, told.code, h.opts.Clean(told.message))
	case errors.As(err, &large):
		problem.Write(w, http.StatusRequestEntityTooLarge, "too_large",
			"the body has more bytes than a request may have")
	default:
		h.opts.Logger.ErrorContext(r.Context(), "a request of the API failed", "error", err)
		problem.Write(w, http.StatusServiceUnavailable, "unavailable",
			"the request could not be decided, so it is refused; try again")
	}
}

// body decodes the JSON object in the body of a request.
func body(r *http.Request, into any) error {
	raw, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{status: http.StatusRequestTimeout, code: "timeout", message: "the body did not arrive in time"}
	case err != nil:
		return &refusal{status: http.StatusBadRequest, code: "invalid_request",
			message: "the body could not be read: it is not framed as HTTP has it, or the connection ended"}
	}
	if err := decode(raw, into); err != nil {
		return &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: err.Error()}
	}
	return nil
}
