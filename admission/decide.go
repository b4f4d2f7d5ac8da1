package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/policies"
)

// Decide decides whether an act may happen. The steps have one order for all kinds of acts, and the
// first refusal counts:
//
//	                         run   call   action  tool  verification  built-in  kernel  elicitation  connection
//	1 limits of the run             x
//	2 policies                      x                                                       x            x
//	3 rate of the principal   a     a       a      a         a           a       a, f
//	4 state of the agent      a     a       a      a         a           a        a
//	5 conversation            a     a       a
//	6 rules about agents      a     a       a      a         p           p       n, p
//	7 budget                  a     a       a      a         a           a       a, f
//	8 people                 wait  wait    ask    ask                                                   wait
//
// a: if an agent acts. f: unless the action is forwarded as a run or a call, which is decided
// itself. n: the named policies of the request. p: only the agent's permissions, because the act
// has no external effects. A refusal by the policies (step 2) is reported last, so that an agent's
// refused call still counts as a request; policies that refuse a call have the last word about the
// message.
//
// Before step 4, the act is parsed and its risk is determined, in the turn of its account. Steps 4
// to 8 and their effects are one durable transaction: a step of a conversation has one winner, and
// nothing is debited for an act that is refused. Each decision about an agent has one record in the
// audit log, unless the caller records it.
//
// An approved act has a grant. A PENDING run or call has a pending grant: the caller asks a person
// and then calls Grant.Approve. A PENDING announcement has no grant, but a question that people can
// answer when Decide returns; the agent announces it again.
//
// The error is agents.ErrUnknown, ErrNoAgents, or the reason why no decision was possible, and then
// nothing is permitted.
func (s *Service) Decide(ctx context.Context, act Act) (Ruling, *Grant, error) {
	if act.Kind < Run || act.Kind > Connection {
		return Ruling{}, nil, errKind
	}
	if act.Rules == nil {
		act.Rules = s.Rules()
	}
	e := &evaluation{service: s, act: act}
	if act.Kind == Call {
		if refused := s.quota(ctx, act); refused != nil {
			return e.denied(refused), nil, nil
		}
	}
	switch {
	case act.Host != nil:
		e.policies = act.Rules.Policies.DecideConnect(*act.Host)
	case act.Request != nil:
		e.policies = act.Rules.Policies.Decide(*act.Request)
	}
	if act.Agent == "" || act.Kind == Elicitation || act.Kind == Connection {
		return e.decideCaller()
	}
	if e.agentGate = s.agents.Load(); e.agentGate == nil {
		return Ruling{}, nil, ErrNoAgents
	}
	return e.decideAgent(ctx)
}

// ErrNoAgents is returned for an act of an agent before the store of agents is open.
var ErrNoAgents = errors.New("this process has not opened the store of registered agents")

var errKind = errors.New("the kind of the act is unknown")

// decideCaller decides about an act of a caller who is not an agent. Only the policies limit it.
func (e *evaluation) decideCaller() (Ruling, *Grant, error) {
	switch {
	case e.isAnnounced() || e.act.Kind == KernelAction:
		return Ruling{}, nil, agents.ErrUnknown
	case e.hasPolicies() && !e.policies.Allow:
		return e.denied(&Error{Message: strings.Join(e.policies.Reasons, "; ")}), nil, nil
	case len(e.policies.Approve) > 0:
		return e.ruling(Pending), &Grant{evaluation: e, pending: true}, nil
	}
	return e.ruling(Approved), &Grant{evaluation: e}, nil
}

// decideAgent decides about an act of an agent.
func (e *evaluation) decideAgent(ctx context.Context) (Ruling, *Grant, error) {
	defer e.release()
	var err error
	if e.agent, err = e.opts.Agents.Recent(ctx, e.act.Agent); err != nil {
		return Ruling{}, nil, err
	}
	r, err := e.decide(ctx)
	if err != nil {
		return Ruling{}, nil, err
	}
	if err := e.record(ctx, r); err != nil {
		return Ruling{}, nil, err
	}
	if r, err = e.existing(ctx, r); err != nil {
		return Ruling{}, nil, err
	}
	if r.Error != nil || r.Decision == Pending && e.isAnnounced() {
		return r, nil, nil
	}
	return r, &Grant{evaluation: e, pending: r.Decision == Pending}, nil
}

// evaluation is one act that is being decided.
type evaluation struct {
	*agentGate // nil if no agent acts
	service    *Service
	act        Act
	policies   policies.Decision // of the operator, about a call

	agent   agents.Agent
	action  Action // the act in the form of an announced action
	context Context
	at      acted
	onState string // fingerprint of the action on its state; empty without a state
	judged
	state conversationState
	questioning
	debited budget.Amount // 0 while the act is pending, and once it has ended
	debitAt time.Time
	// kept is the record that the transaction has kept and the log does not have yet, or nil.
	kept *keptRecord
	// forgetting are the IDs of kept records that the transaction deletes.
	forgetting []string
}

// questioning is what an evaluation needs to ask a person.
type questioning struct {
	place approval.Reservation // for a question, if the rules require one
	shown json.RawMessage      // the action as people see it
	full  error                // the reason why the reservation failed
	ask   *question            // opened with the reservation after the commit
	asked *liveQuestion        // asked by an earlier request of the agent
}

// hasPolicies reports whether the operator's policies decide about the act.
func (e *evaluation) hasPolicies() bool { return e.act.Request != nil || e.act.Host != nil }

// isAnnounced reports whether the agent only announces the act.
func (e *evaluation) isAnnounced() bool {
	return e.act.Kind == AnnouncedAction || e.act.Kind == AnnouncedTool
}

// isStep reports whether the act belongs to a conversation, whose steps and repetitions are limited.
func (e *evaluation) isStep() bool {
	return e.act.Kind == Run || e.act.Kind == Call || e.act.Kind == AnnouncedAction
}

// isBuiltIn reports whether only the agent's state, permissions and budget limit the act.
func (e *evaluation) isBuiltIn() bool { return e.act.Kind == Verification || e.act.Kind == BuiltIn }

// isForwarded reports whether another act follows that has its own decision.
func (e *evaluation) isForwarded() bool {
	return e.act.Kind == KernelAction && e.act.Execution.Forwarded
}

func (e *evaluation) decide(ctx context.Context) (r Ruling, err error) {
	if e.act.Kind != AnnouncedAction {
		e.action.Type = e.act.names()[0]
	}
	if !e.isForwarded() {
		err = e.limit(ctx)
	}
	if err == nil {
		err = e.prepare(ctx)
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return e.denied(refused), nil
	}
	if err != nil {
		return Ruling{}, err
	}
	transact := e.opts.Database.Update
	if e.isForwarded() { // it has no effects
		transact = e.opts.Database.View
	}
	at := e.at
	err = transact(ctx, func(tx database.Tx) (err error) {
		e.at, e.debited, e.kept = at, 0, nil // the transaction may be repeated
		e.dropQuestion()
		e.asked = nil
		if r, err = e.transact(ctx, tx); err != nil || !e.isAnnounced() && e.debited == 0 {
			return err
		}
		return e.keepRecord(ctx, tx, e.decisionRecord(r))
	})
	return r, err
}

// prepare does the slow work before the transaction, in the account's turn: it parses the act,
// determines its risk, and evaluates the rules.
func (e *evaluation) prepare(ctx context.Context) error {
	done, err := e.awaitTurn(ctx, len(e.act.Arguments)+len(e.act.Context))
	if err != nil {
		return err
	}
	defer done()
	if err := e.read(); err != nil || e.isBuiltIn() {
		return err
	}
	if err := e.assess(ctx); err != nil {
		return err
	}
	if !e.isAnnounced() || !e.asks() {
		return nil
	}
	if err := e.show(); err != nil {
		return err
	}
	e.reserve()
	return e.dropLost(ctx)
}

// transact decides and stores the consequences.
func (e *evaluation) transact(ctx context.Context, tx database.Tx) (Ruling, error) {
	refused, err := e.refusal(ctx, tx)
	if err != nil {
		return Ruling{}, err
	}
	charge := budget.Charge{}
	switch {
	case e.isForwarded() && refused != nil:
		return e.denied(refused), nil
	case e.isForwarded():
		return e.ruling(Approved), nil
	case refused != nil:
		return e.denied(refused), e.ledger.Record(ctx, tx, e.accounts(), charge)
	}
	charge.Cost = e.cost()
	if err := e.ledger.Check(ctx, tx, e.accounts(), charge); err != nil {
		return e.exceeded(err)
	}
	r := e.ruling(Approved)
	if e.asks() { // people are only asked about acts that the budget covers
		if r, err = e.people(ctx, tx); err != nil || r.Error != nil {
			return r, errors.Join(err, e.ledger.Record(ctx, tx, e.accounts(), budget.Charge{}))
		}
	}
	if r.Decision == Pending {
		charge.Cost = 0 // it is debited when it is approved
	}
	e.debitAt, e.debited = e.now(), charge.Cost
	if err := e.ledger.Record(ctx, tx, e.accounts(), charge); err != nil {
		return r, err
	}
	return r, e.commit(ctx, tx, r.Decision == Approved)
}

// refusal checks the state of the agent, the conversation and the rules.
func (e *evaluation) refusal(ctx context.Context, tx database.Tx) (*Error, error) {
	if err := e.reload(ctx, tx); err != nil {
		return nil, err
	}
	if !e.isStep() {
		return e.unpermitted(), nil
	}
	if e.unknown != nil {
		return e.unknown, nil
	}
	if refused, err := e.repeated(ctx, tx); refused != nil || err != nil {
		return refused, err
	}
	return e.unpermitted(), nil
}

// unpermitted returns the refusal by the agent's permissions and by the rules.
func (e *evaluation) unpermitted() *Error {
	switch e.act.Kind {
	case Verification, BuiltIn:
		return e.outsidePermissions()
	case KernelAction:
		return e.violation()
	case AnnouncedTool:
		if refused := e.toolRefusal(); refused != nil || e.isListedTool() {
			return refused
		}
	}
	switch {
	case !e.rules.Allow:
		return e.forbidden()
	case e.act.Request != nil && !e.policies.Allow:
		return refuse(CodePolicy, "policy does not allow this call")
	}
	return nil
}

// asks reports whether a person must approve the act.
func (e *evaluation) asks() bool {
	switch e.act.Kind {
	case Verification, BuiltIn, KernelAction:
		return false
	case AnnouncedTool:
		return e.described.Category == policies.ActDangerous || len(e.rules.Approve) > 0 && !e.isListedTool()
	}
	return e.rules.Allow && len(e.policies.Approve)+len(e.rules.Approve) > 0
}
