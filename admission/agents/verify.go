package agents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/policies"
)

// Values of Decision.Decision.
const (
	Approved       = "APPROVED"
	Denied         = "DENIED"
	Pending        = "PENDING"
	BudgetExceeded = "BUDGET_EXCEEDED"
)

// Error codes for refusals by rules, people and limits.
const (
	CodePolicy       = "QWED-AGENT-POLICY-001"   // the rules do not permit it
	CodeRefused      = "QWED-AGENT-APPROVAL-001" // a person refused
	CodeManyOpen     = "QWED-AGENT-APPROVAL-002" // too many questions of the agent, or of its account, are open
	CodeNobody       = "QWED-AGENT-APPROVAL-003" // no person can be asked
	CodeRate         = "QWED-AGENT-RATE-001"
	CodeRateUnknown  = "QWED-AGENT-RATE-002" // the limiter failed, which refuses the request
	CodeStateMissing = "QWED-AGENT-STATE-004"
)

// Decision is the decision about an action.
type Decision struct {
	Decision     string `json:"decision"`
	AgentID      string `json:"agent_id"`
	Conversation string `json:"conversation_id,omitempty"`
	Step         int64  `json:"step_number,omitempty"`
	Error        *Error `json:"error,omitempty"` // for DENIED and BUDGET_EXCEEDED
	RiskLevel    string `json:"risk_level,omitempty"`
	TrustLevel   int    `json:"trust_level"`
	// Policies are the IDs of the rules that decided.
	Policies []string `json:"policies,omitempty"`
	// ApprovalID identifies the open question if the decision is PENDING.
	ApprovalID string `json:"approval_id,omitempty"`
	Approver   string `json:"approver,omitempty"` // the person who approved the action
	// RetryAt is the time at which the budget is renewed, for BUDGET_EXCEEDED; nil if waiting does
	// not help.
	RetryAt *time.Time `json:"retry_at,omitempty"`
}

// attempt is one act that is being decided.
type attempt struct {
	*Service
	agent   Agent
	action  Action
	context Context
	at      acted
	onState string // fingerprint of the action on its state; empty without a state
	judged
	state   conversationState
	place   approval.Reservation // for a question, if the rules require one
	full    error                // the reason why the reservation failed
	ask     *question            // opened with the reservation after the commit
	debited budget.Amount
}

// judged holds the assessed risk of an act and the decision of the rules, for one state of the
// agent.
type judged struct {
	risk     admission.Assessment
	describe func(Agent) (policies.Act, *Error) // the act as seen by the rules; on error, the rules are not evaluated
	act      policies.Act
	refused  *Error
	rules    policies.Decision
}

// judge applies the rules to the act for the current state of the agent.
func (a *attempt) judge() {
	a.act, a.refused = a.describe(a.agent)
	a.rules = a.opts.Rules.DecideAct(a.act)
}

// reload reads the agent in a transaction. If it has changed since the act was judged, the act is
// judged again.
func (a *attempt) reload(ctx context.Context, tx database.Tx) error {
	now, err := find(ctx, tx, a.agent.ID)
	if err != nil || reflect.DeepEqual(now, a.agent) {
		return err
	}
	a.agent = now
	a.remembered.put(now)
	if a.describe != nil {
		a.judge()
	}
	return nil
}

// VerifyAction decides whether an agent may perform an announced action. action and place are the
// JSON of the action and its context. Everything happens in one transaction, so of several claims
// to one step exactly one succeeds. The decision is durable and in the audit log when VerifyAction
// returns. The error is ErrUnknown, or the reason why no decision was possible, and then nothing is
// permitted.
func (s *Service) VerifyAction(ctx context.Context, agentID string, action, place json.RawMessage) (Decision, error) {
	a := attempt{Service: s}
	var err error
	if a.agent, err = s.recent(ctx, agentID); err != nil {
		return Decision{}, err
	}
	defer a.release()
	d, err := a.decide(ctx, action, place)
	if err != nil {
		return Decision{}, err
	}
	if err := a.recordDecision(ctx, d); err != nil {
		return Decision{}, err
	}
	return d, a.openQuestion(ctx)
}

func (a *attempt) decide(ctx context.Context, action, place json.RawMessage) (Decision, error) {
	if refused := a.limit(ctx); refused != nil {
		return a.deny(refused), nil
	}
	if err := a.prepare(ctx, action, place); err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			return a.deny(refused), nil
		}
		return Decision{}, err
	}
	var d Decision
	err := a.opts.Database.Update(ctx, func(tx database.Tx) (err error) {
		d, err = a.transact(ctx, tx)
		return err
	})
	return d, err
}

// prepare does the slow work before the transaction, in the account's turn: it parses the action,
// assesses its risk, and applies the rules. The error is an *Error if the request is refused.
func (a *attempt) prepare(ctx context.Context, action, place json.RawMessage) error {
	done, err := a.assessing.begin(ctx, a.agent.Share(), len(action)+len(place))
	if err != nil {
		return err
	}
	defer done()
	if err := a.parse(action, place); err != nil {
		return err
	}
	return a.assess(ctx)
}

// assess determines the risk of an announced action or tool and applies the rules.
func (a *attempt) assess(ctx context.Context) error {
	subject, err := a.subject(a.action)
	if err != nil {
		return err
	}
	if a.risk, err = admission.Assess(ctx, subject); err != nil {
		return err
	}
	a.describe = func(agent Agent) (policies.Act, *Error) {
		act, known := agent.announced(a.action, a.risk)
		if known {
			return act, nil
		}
		return act, refuse(CodeUnknownType, "the action type %q has no known meaning; allowed_tools of the agent's permissions can name it",
			truncate.Head(a.action.Type, maxName))
	}
	a.judge()
	if a.rules.Allow && len(a.rules.Approve) > 0 {
		a.reserve()
	}
	return nil
}

func (a *attempt) limit(ctx context.Context) *Error {
	if a.opts.Limiter == nil {
		return nil
	}
	err := a.opts.Limiter.Allow(ctx, a.agent.PrincipalID)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooOften):
		return refuse(CodeRate, "too many requests: wait before the next one")
	}
	a.opts.Logger.WarnContext(ctx, "the rate limiter cannot tell, and its requests are denied", "error", err)
	return refuse(CodeRateUnknown, "the rate limiter is unavailable, and while it is all requests are denied")
}

func (a *attempt) parse(action, place json.RawMessage) (err error) {
	if a.context, err = ParseContext(place); err != nil {
		return err
	}
	if a.opts.RequireState && a.context.StateHash == "" {
		return refuse(CodeStateMissing, "context.pre_action_state_hash and context.state_source are required here")
	}
	if a.action, err = ParseAction(action); err != nil {
		return err
	}
	a.at.Step = a.context.Step
	if a.at.Fingerprint, err = a.action.Fingerprint(); err != nil || a.context.StateHash == "" {
		return err
	}
	a.onState, err = a.action.fingerprintOn(a.context.StateHash)
	return err
}

// transact decides and stores the consequences.
func (a *attempt) transact(ctx context.Context, tx database.Tx) (Decision, error) {
	if err := a.reload(ctx, tx); err != nil {
		return Decision{}, err
	}
	if a.refused != nil {
		return a.denied(ctx, tx, a.refused)
	}
	if err := a.load(ctx, tx); err != nil {
		return Decision{}, err
	}
	if refused := a.state.check(a.at, a.onState); refused != nil {
		return a.denied(ctx, tx, refused)
	}
	d := a.decision(Approved)
	d.RiskLevel, d.Policies = a.risk.Risk.Level(), a.rules.Policies()
	if !a.rules.Allow {
		d.Decision, d.Error = Denied, a.forbidden()
		return d, a.ledger.Record(ctx, tx, a.accounts(), budget.Charge{})
	}
	charge := budget.Charge{Cost: a.opts.Prices.of(a.action.Type)}
	err := a.ledger.Check(ctx, tx, a.accounts(), charge)
	if err != nil {
		return exceeded(d, err)
	}
	if len(a.rules.Approve) > 0 { // people are only asked about actions that the budget covers
		if d, err = a.askedFor(ctx, tx, d); err != nil || d.Decision == Denied {
			return d, err
		}
	}
	return a.pay(ctx, tx, d, charge)
}

// forbidden returns the refusal of an act that the rules do not permit.
func (a *attempt) forbidden() *Error {
	return refuse(CodePolicy, "%s risk at trust level %d: %s", why(a.risk), a.agent.Trust, strings.Join(a.rules.Reasons, "; "))
}

// pay debits an action that is approved or pending, and commits its step.
func (a *attempt) pay(ctx context.Context, tx database.Tx, d Decision, charge budget.Charge) (Decision, error) {
	if d.Decision == Pending {
		charge = budget.Charge{} // its cost is debited when it is approved
	} else if len(a.rules.Approve) > 0 {
		if err := a.answered(ctx, tx); err != nil {
			return d, err
		}
	}
	if err := a.ledger.Record(ctx, tx, a.accounts(), charge); err != nil {
		return d, err
	}
	a.debited = charge.Cost
	a.state.remember(a.at, a.onState, d.Decision == Approved)
	return d, a.store(ctx, tx)
}

// exceeded returns the decision that names the exceeded budget. It has no other effect: no step is
// committed and no person is asked.
func exceeded(d Decision, err error) (Decision, error) {
	var exceeded *budget.Exceeded
	if !errors.As(err, &exceeded) {
		return d, err
	}
	d.Decision = BudgetExceeded
	d.Error = &Error{Code: exceeded.Code, Message: exceeded.Text, Retryable: !exceeded.Again.IsZero(), Kind: errortype.Budget}
	if !exceeded.Again.IsZero() {
		d.RetryAt = &exceeded.Again
	}
	return d, nil
}

func (a *attempt) accounts() []string {
	accounts := []string{a.agent.Account(), budget.Principal + ":" + a.agent.PrincipalID}
	if a.context.Conversation != "" && a.ledger.HasDefault(budget.Session) {
		accounts = append(accounts, budget.Session+":"+a.agent.ID+"/"+a.context.Conversation)
	}
	return accounts
}

func (a *attempt) decision(word string) Decision {
	return Decision{
		Decision: word, AgentID: a.agent.ID, Conversation: a.context.Conversation, Step: a.context.Step, TrustLevel: a.agent.Trust,
	}
}

func (a *attempt) deny(why *Error) Decision {
	d := a.decision(Denied)
	d.Error = why
	return d
}

// denied is like deny, and also counts the request.
func (a *attempt) denied(ctx context.Context, tx database.Tx, why *Error) (Decision, error) {
	return a.deny(why), a.ledger.Record(ctx, tx, a.accounts(), budget.Charge{})
}

func (a *attempt) load(ctx context.Context, tx database.Tx) error {
	a.state = conversationState{}
	var state string
	err := tx.QueryRowContext(ctx, `SELECT state FROM conversation WHERE agent = ? AND id = ?`, a.agent.ID, a.context.Conversation).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return strictjson.UnmarshalOpen([]byte(state), &a.state)
}

func (a *attempt) store(ctx context.Context, tx database.Tx) error {
	state, err := json.Marshal(a.state)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO conversation VALUES (?, ?, ?) ON CONFLICT (agent, id) DO UPDATE SET state = excluded.state`,
		a.agent.ID, a.context.Conversation, string(state))
	return err
}

// recordDecision writes the decision to the audit log.
func (a *attempt) recordDecision(ctx context.Context, d Decision) error {
	r := a.recordOf(d)
	setCost(&r, a.debited)
	telemetry.CountAgentAction(ctx, d.Decision)
	return a.opts.Log.Append(ctx, r)
}

// recordOf returns the common part of a decision's record.
func (a *attempt) recordOf(d Decision) audit.Record {
	r := audit.Record{
		Kind:     audit.KindAction,
		Identity: audit.Identity{Principal: a.agent.ID, CallerKind: "agent", SessionID: a.context.Conversation},
		Act:      audit.Act{ToolName: truncate.Head(a.action.Type, maxName)},
		Ruling: audit.Ruling{
			Decision: d.Decision, Policies: d.Policies, PolicyVersion: a.opts.Rules.Version(), Risk: d.RiskLevel, Approver: d.Approver,
		},
	}
	if a.at.Fingerprint != "" {
		r.ArgumentsHash = a.opts.Log.Hash([]byte(a.at.Fingerprint))
	}
	if d.Error != nil {
		r.ErrorType = d.Error.Code
	}
	return r
}
