package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/redact"
)

// RelayingUpstream is an Upstream whose servers may ask the person behind a call.
// CallFor is Call for that person.
type RelayingUpstream interface {
	Upstream
	CallFor(ctx context.Context, relay upstream.Relay, serverID, name string,
		arguments json.RawMessage) (json.RawMessage, error)
}

var _ RelayingUpstream = (*upstream.Set)(nil)

// CallersUpstream is an Upstream that calls some servers in the name of the caller.
type CallersUpstream interface {
	Upstream
	// For returns the carrier of a caller's calls to a server. acting is who acts for the caller; nil if calls of
	// several actors share the carrier. It is valid until done is called. The errors are those of Call.
	For(who caller.Caller, acting *audit.Actor, serverID string) (carrier RelayingUpstream, done func(), err error)
}

// maxElicitations is the maximum number of questions of a server during one call.
const maxElicitations = 10

// callUpstream calls the server in the caller's name. If the operator lets the server ask,
// questions go to the person behind the run.
func (a *attempt) callUpstream(ctx context.Context) (json.RawMessage, error) {
	carrier := a.broker.upstream
	if callers, ok := carrier.(CallersUpstream); ok {
		var acting *audit.Actor
		if a.tool.Use == "" { // subscriptions outlive a run
			acting = a.run.identity.acting.Act
		}
		own, done, err := callers.For(a.run.identity.Caller, acting, a.tool.ServerID)
		if err != nil {
			return nil, err
		}
		defer done()
		carrier = own
	}
	relaying, ok := carrier.(RelayingUpstream)
	if !ok || !a.broker.admission.Rules().Elicitation[a.tool.ServerID] && a.run.opts.Notices == nil {
		return carrier.Call(ctx, a.tool.ServerID, catalog.UseName(a.tool.Use, a.tool.Name), a.arguments)
	}
	return relaying.CallFor(ctx, &relay{attempt: a}, a.tool.ServerID,
		catalog.UseName(a.tool.Use, a.tool.Name), a.arguments)
}

// relay forwards questions to the person behind one call.
type relay struct {
	attempt *attempt

	mu    sync.Mutex // guards asked
	asked int
}

var _ upstream.Relay = (*relay)(nil)

// Notify implements upstream.Relay.
func (r *relay) Notify(method string, params json.RawMessage) {
	if n := r.attempt.run.opts.Notices; n != nil {
		n.pass(r.attempt, method, params)
	}
}

// LogLevel implements upstream.Relay.
func (r *relay) LogLevel() string {
	if n := r.attempt.run.opts.Notices; n != nil {
		return n.Level
	}
	return ""
}

// Elicit implements upstream.Relay. It asks the person in the server's name if policy allows it.
// The values that they type are sent to that server and not stored.
func (r *relay) Elicit(ctx context.Context, e upstream.Elicitation) (upstream.ElicitationAnswer, error) {
	r.mu.Lock()
	r.asked++
	tooMany := r.asked > maxElicitations
	r.mu.Unlock()
	form, err := readForm(e)
	switch {
	case tooMany:
		err = fmt.Errorf("it has asked %d times during this call", maxElicitations)
	case err == nil:
		err = r.permitted(ctx)
	}
	if err != nil {
		return upstream.ElicitationAnswer{}, r.refuse(ctx, form, err)
	}
	var answer upstream.ElicitationAnswer
	r.attempt.run.parked(func() { answer, err = r.ask(ctx, form) })
	return answer, err
}

// permitted reports whether the current rules let the server ask.
func (r *relay) permitted(ctx context.Context) error {
	request := r.attempt.request()
	request.Elicits = true
	ruling, _, err := r.attempt.broker.admission.Decide(ctx,
		admission.Act{Kind: admission.Elicitation, Request: request})
	if err == nil && ruling.Error != nil {
		err = ruling.Error
	}
	return err
}

// refuse records that a server may not ask.
func (r *relay) refuse(ctx context.Context, f form, why error) error {
	what := f.what
	if what == "" {
		what = "a question"
	}
	r.note(ctx, fmt.Sprintf("the server wanted to ask the person (%s), and may not: %v", what, why), "")
	return fmt.Errorf("asking for server %q: %w", r.attempt.tool.ServerID, why)
}

// ask records the question and asks the person.
func (r *relay) ask(ctx context.Context, f form) (upstream.ElicitationAnswer, error) {
	a := r.attempt
	question := a.question()
	// the question is asked by the server
	question.Code, question.ClaimedLine, question.Rules, question.Approve = "", 0, []string{}, []string{}
	question.People = 0
	question.Arguments = a.shown(f.shown)
	question.Elicitation = &f.Elicitation
	started := a.elicitationRecord(fmt.Sprintf("%s: the server asks the person, with %s, until %s", question.ID, f.what,
		question.Expires.UTC().Format("2006-01-02T15:04:05Z")))
	if err := a.broker.recorder.Append(ctx, started); err != nil {
		return upstream.ElicitationAnswer{}, fmt.Errorf("recording a question: %w", err)
	}
	verdict, err := a.broker.opts.Approver.Ask(ctx, question)
	if err != nil {
		r.note(ctx, question.ID+": no person could be asked", "")
		return upstream.ElicitationAnswer{}, err
	}
	if verdict.Answer == approval.Yes {
		a.verdict.Approvers = verdict.Approvers
		if fail := a.inForce(ctx); fail != nil {
			r.note(ctx, question.ID+": the answer is not passed on: "+fail.Message, verdict.By)
			return upstream.ElicitationAnswer{}, errors.New(fail.Message)
		}
	}
	answer := upstream.ElicitationAnswer{Action: "decline"}
	switch verdict.Answer {
	case approval.Yes:
		answer.Action = "accept"
		if f.URL == "" {
			answer.Content = json.RawMessage(verdict.Content.Reveal())
		}
		a.run.typedIn(f, answer.Content)
	case approval.Expired, approval.Dismissed:
		answer.Action = "cancel"
	case approval.Unreachable:
		r.note(ctx, question.ID+": there is no person here who could answer", "")
		return upstream.ElicitationAnswer{}, errors.New("there is no person to ask")
	}
	r.note(ctx, fmt.Sprintf("%s: the person's answer: %s", question.ID, answer.Action), verdict.By)
	return answer, nil
}

func (a *attempt) elicitationRecord(detail string) audit.Record {
	record := a.record(audit.KindApproval)
	record.Detail = a.run.opts.Redactor.Text(detail)
	return record
}

// note records the outcome of a question. A failure does not stop the call.
func (r *relay) note(ctx context.Context, detail, by string) {
	record := r.attempt.elicitationRecord(detail)
	record.Approver = by
	if err := r.attempt.broker.recorder.Note(ctx, record); err != nil {
		r.attempt.broker.opts.Logger.ErrorContext(ctx, "the end of a question could not be recorded",
			slog.String(telemetry.KeyCall, r.attempt.id), slog.Any(telemetry.KeyError, err))
	}
}

// typed holds values that people have typed for servers during a run. They are removed if a server
// repeats them to the sandbox.
type typed struct {
	mu     sync.Mutex // guards values
	values *redact.Redactor
}

// typedIn remembers the free texts of an answer. A choice from a list is not a secret.
func (s *RunCalls) typedIn(f form, content json.RawMessage) {
	var values map[string]any
	if strictjson.UnmarshalOpen(content, &values) != nil {
		return
	}
	s.questions.typed.mu.Lock()
	defer s.questions.typed.mu.Unlock()
	for _, name := range f.free {
		if text, ok := values[name].(string); ok {
			if s.questions.typed.values == nil {
				s.questions.typed.values = redact.New()
			}
			s.questions.typed.values.Hold(text) // texts that are too short to search for are skipped
		}
	}
}

// withoutTyped removes what people have typed from a result.
func (s *RunCalls) withoutTyped(result json.RawMessage) (json.RawMessage, []redact.Finding, error) {
	s.questions.typed.mu.Lock()
	values := s.questions.typed.values
	s.questions.typed.mu.Unlock()
	if values == nil {
		return result, nil, nil
	}
	return values.HeldJSON(result)
}
