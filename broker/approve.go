package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// approve asks a person if the rules require it. The sandbox waits, and its run's clock is paused.
func (a *attempt) approve(ctx context.Context) *failure {
	a.approval = approval.NotRequired
	if len(a.ruling.Approve) == 0 {
		return nil
	}
	a.approval = approval.Pending
	a.run.questions.ask(a.call.Tag, a.call.Expires)
	defer a.run.questions.over(a.call.Tag)
	var fail *failure
	a.run.parked(func() {
		asking, span := telemetry.Start(ctx, telemetry.SpanApprove)
		fail = a.ask(asking)
		answer := telemetry.AttrAnswer.String(string(a.approval))
		span.Set(answer)
		span.EndTimed(asking, telemetry.Approval, "", answer)
	})
	if fail == nil {
		fail = a.approved(ctx)
	}
	if begin := a.run.opts.OnApproved; fail == nil && begin != nil {
		if err := begin(a.call.Tag); err != nil {
			fail = unrecorded(err)
		}
	}
	a.run.met(a.approval)
	return fail
}

// approved has the act decided again after a person has approved it.
func (a *attempt) approved(ctx context.Context) *failure {
	r, err := a.grant.Approve(ctx, a.verdict.By)
	switch {
	case err != nil:
		return undecided(err)
	case r.Error == nil:
		return nil
	case r.Error.Reason == admission.Stale:
		a.approval = approval.Denied
		return failf(errortype.ApprovalDenied, "%s; make the call again", r.Error.Message)
	}
	return failureOf(r)
}

// ask asks the question, unless a person has refused the same one in this run. Identical calls are
// asked about sequentially, so that one refusal applies to all.
func (a *attempt) ask(ctx context.Context) *failure {
	same := a.run.questions.of(a.sameQuestion())
	if err := same.lock(ctx); err != nil {
		return a.cut(ctx)
	}
	defer same.unlock()
	if same.refused != nil {
		return a.askedBefore(same.refused)
	}
	question := a.question()
	a.run.questions.ask(a.call.Tag, question.Expires)
	if err := a.recordQuestion(ctx, question); err != nil {
		return unrecorded(err)
	}
	var err error
	a.verdict, err = a.broker.opts.Approver.Ask(ctx, question)
	a.recordVerdict(ctx, question, err)
	switch {
	case ctx.Err() != nil:
		return a.cut(ctx)
	case err != nil:
		a.approval = approval.Denied
		return failf(errortype.ApprovalDenied, "the call needs a person's approval, and no person could be asked. %s",
			whereToAnswer).because(err)
	}
	switch a.verdict.Answer {
	case approval.Yes, approval.Expired, approval.Unreachable:
	case approval.Dismissed:
		same.refused = &refusal{question.ID, a.verdict,
			"a person closed the question about this very call without deciding"}
	default:
		same.refused = &refusal{question.ID, a.verdict, "a person refused this very call"}
	}
	return a.outcome(question)
}

// askedBefore returns the failure of a call about which a person was asked in this run without
// approving it. Dismissing the question does not count as a refusal.
func (a *attempt) askedBefore(r *refusal) *failure {
	a.approval, a.verdict = approval.Denied, r.verdict
	kind, advice := errortype.ApprovalDenied, "Do not repeat it; ask the user what to do instead"
	if r.verdict.Answer == approval.Dismissed {
		a.approval, kind, advice = approval.Pending, errortype.ApprovalTimeout,
			"Ask the user whether to go on, then make the call in a new run"
	}
	f := failf(kind, "%s, and it is not asked again in this run. %s", r.why, advice)
	f.detail = "refused as " + r.id + " was"
	return f
}

// whereToAnswer describes how to answer if no host asks the person.
const whereToAnswer = "Questions are answered with `airlock approvals watch` in a terminal, while the run waits"

// outcome converts a verdict to a failure. It returns nil if a person approved in time and the rules
// have not changed since.
func (a *attempt) outcome(question approval.Question) *failure {
	a.approval = approval.Denied
	switch a.verdict.Answer {
	case approval.Yes:
		if !a.broker.opts.Now().Before(question.Expires) {
			return failf(errortype.ApprovalTimeout, "the approval came too late")
		}
		a.approval = approval.Approved
		return nil
	case approval.Expired:
		a.approval = approval.Pending
		return failf(errortype.ApprovalTimeout,
			"the call needs a person's approval, and no person answered within %v. Tell the user to run `airlock "+
				"approvals watch` in a terminal, then make the call again",
			a.run.limits.ApprovalTimeout)
	case approval.Dismissed:
		a.approval = approval.Pending
		return failf(errortype.ApprovalTimeout,
			"the call needs a person's approval, and the question was closed without an answer. Ask the user whether "+
				"to go on, then make the call in a new run; they can also answer with `airlock approvals watch`")
	case approval.Unreachable:
		return failf(errortype.ApprovalDenied,
			"the call needs a person's approval (%s), and there is no person to ask here. %s. %s",
			a.withoutPaths(strings.Join(a.ruling.Policies(), ", ")), whereToAnswer, a.howToAllow())
	default:
		if a.verdict.Reason != "" {
			return failf(errortype.ApprovalDenied,
				"a person refused the call and says %q. Do not repeat it; ask the user what to do instead",
				a.verdict.Reason)
		}
		return failf(errortype.ApprovalDenied,
			"a person refused the call. Do not repeat it; ask the user what to do instead")
	}
}

// howToAllow returns a hint for the operator who reads the message.
func (a *attempt) howToAllow() string {
	if a.tool.ServerID == "" {
		return "The operator can register an agent that is trusted further (airlock agents create --type)"
	}
	if a.ruling.Risk == policies.RiskCritical {
		return fmt.Sprintf("The operator can lower its risk (servers.%s.tools.%s.risk: write) and allow it "+
			"(servers.%s.allow), or write a policy",
			a.tool.ServerID, a.tool.Name, a.tool.ServerID)
	}
	return fmt.Sprintf("The operator can allow it (servers.%s.allow: [%s]), trust the server's own claim to only "+
		"read (servers.%s.trustAnnotations: true), or write a policy",
		a.tool.ServerID, a.tool.Name, a.tool.ServerID)
}

func (a *attempt) question() approval.Question {
	now := a.broker.opts.Now()
	expires := a.call.Expires
	if expires.IsZero() {
		expires = now.Add(a.run.limits.ApprovalTimeout)
	}
	rules := make([]string, len(a.ruling.Rules))
	for i, r := range a.ruling.Rules {
		rules[i] = r.String()
	}
	var flags []string
	for _, flag := range a.settings.Flags {
		flags = append(flags, flag.String())
	}
	who := a.run.identity
	risk := a.ruling.Risk.String()
	if a.tool.ServerID == "" { // a run; its risk is only known to rules about agents
		risk = a.ruling.Risk.Level()
	}
	return approval.Question{
		ID: telemetry.NewID("apr"), Asked: now, Expires: expires,
		Asking: who.asking(a.id),
		Subject: approval.Subject{
			ServerID: a.tool.ServerID, ToolName: a.tool.Name, DefinitionDigest: a.tool.Digest,
			Arguments: a.shown(a.arguments), CodeHash: who.CodeHash, PolicyVersion: a.rules.Policies.Version(),
			Code: a.shownCode(), ClaimedLine: a.call.Line,
		},
		Grounds: approval.Grounds{Risk: risk, Flags: flags, Rules: rules, Approve: a.ruling.Approve,
			People: a.ruling.People, Cure: a.rules.Policies.HowToAllow(*a.request(), a.ruling)},
	}
}

// shown returns the arguments in the form shown in a question, without the credentials that Airlock
// holds. A question is written to a file, to a terminal and to a host.
func (a *attempt) shown(arguments json.RawMessage) json.RawMessage {
	cleaned, _, err := a.run.opts.Redactor.HeldJSON(arguments)
	if err != nil { // never happens: invalid JSON was refused before
		return json.RawMessage("null")
	}
	return cleaned
}

// shownCode returns the code of a question. It is empty if the code contains a held credential,
// because the redacted code would not match its digest.
func (a *attempt) shownCode() string {
	code := a.run.identity.Code
	if _, found := a.run.opts.Redactor.Held([]byte(code)); len(found) > 0 {
		return ""
	}
	return code
}

// sameQuestion returns a key that is equal for calls about which a person would be asked the same
// question: one tool with one definition, and arguments that differ only in their encoding or in
// stating a default of the definition.
func (a *attempt) sameQuestion() string {
	arguments, err := canon.JSON(withoutDefaults(a.arguments, a.tool.InputSchema))
	if err != nil { // arguments without a canonical form are compared as they are
		arguments = a.arguments
	}
	return strings.Join([]string{policies.ToolID(a.tool.ServerID, a.tool.Name), a.tool.Digest, canon.Digest(arguments)},
		"\x00")
}

// withoutDefaults removes the arguments whose value equals the default in their schema. Arguments
// that are not an object are returned unchanged.
func withoutDefaults(arguments, inputSchema json.RawMessage) json.RawMessage {
	var properties struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var given map[string]json.RawMessage
	if strictjson.UnmarshalOpen(inputSchema, &properties) != nil || strictjson.UnmarshalOpen(arguments, &given) != nil {
		return arguments
	}
	left := len(given)
	for name, value := range given {
		var schema struct {
			Default json.RawMessage `json:"default"`
		}
		if strictjson.UnmarshalOpen(properties.Properties[name], &schema) != nil || schema.Default == nil {
			continue // a schema may be true or false, which has no default
		}
		is, err := canon.JSON(value)
		usual, usualErr := canon.JSON(schema.Default)
		if err == nil && usualErr == nil && bytes.Equal(is, usual) {
			delete(given, name)
		}
	}
	if len(given) == left {
		return arguments
	}
	less, err := json.Marshal(given)
	if err != nil {
		return arguments
	}
	return less
}

// questions holds the questions of a run to people. The zero value is ready to use. It is safe for
// concurrent use.
type questions struct {
	typed typed // values that people have typed for servers

	mu     sync.Mutex // guards what follows
	same   map[string]*sameQuestion
	asking map[string]time.Time // the calls that wait for approval, by Tag, with the end of their question
}

// ask notes that a call waits for approval, and until when.
func (q *questions) ask(tag string, expires time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asking == nil {
		q.asking = map[string]time.Time{}
	}
	q.asking[tag] = expires
}

// over notes that a call does not wait for approval any more.
func (q *questions) over(tag string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asking, tag)
}

func (q *questions) waiting() map[string]time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.asking)
}

// of returns the state of one question.
func (q *questions) of(key string) *sameQuestion {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.same == nil {
		q.same = map[string]*sameQuestion{}
	}
	if q.same[key] == nil {
		q.same[key] = &sameQuestion{turn: make(chan struct{}, 1)}
	}
	return q.same[key]
}

// sameQuestion is the state of one question of a run, which several calls may ask.
type sameQuestion struct {
	turn    chan struct{} // holds a value while a call asks
	refused *refusal      // set when a person has refused; guarded by turn
}

// refusal describes a person's refusal.
type refusal struct {
	id      string // of the question
	verdict approval.Verdict
	why     string
}

// lock waits until no other call asks the same question.
func (q *sameQuestion) lock(ctx context.Context) error {
	select {
	case q.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *sameQuestion) unlock() { <-q.turn }
