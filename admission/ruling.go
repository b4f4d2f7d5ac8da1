package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/policies"
)

// Values of Ruling.Decision.
const (
	Approved       = "APPROVED"
	Denied         = "DENIED"
	Pending        = "PENDING"
	BudgetExceeded = "BUDGET_EXCEEDED"
)

// Ruling is the decision about an act. The zero value permits nothing.
type Ruling struct {
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
	Approver   string `json:"approver,omitempty"` // the person who approved the act
	// RetryAt is the time at which the budget is renewed, for BUDGET_EXCEEDED; nil if waiting does
	// not help.
	RetryAt *time.Time `json:"retry_at,omitempty"`

	// Reason is the reason why a person must approve an announced tool.
	Reason string `json:"-"`
	// Score is the heuristic risk of an announced tool, from 0 to 1.
	Score float64 `json:"-"`
	// Rules is the decision of the operator's policies and of the rules about agents, with the risk
	// of the act. Its Reasons are those of the policies. It is the zero value if no rules were
	// evaluated.
	Rules policies.Decision `json:"-"`
}

// Refusal returns the code and the sentence of Error, with the time at which the budget is renewed.
func (r Ruling) Refusal() string {
	text := r.Error.Error()
	if r.RetryAt != nil {
		text += "; it begins anew at " + r.RetryAt.UTC().Format(time.RFC3339)
	}
	return text
}

// Reason is the kind of a refusal.
type Reason int

// The reasons for a refusal.
const (
	Forbidden     Reason = iota // by permissions, rules or a person
	Malformed                   // the act cannot be read
	Looping                     // a step was taken, or the act repeats itself
	TooOften                    // more requests than the rate allows
	NoRate                      // the rate limiter is unavailable
	OverBudget                  // more than the budget covers
	ManyQuestions               // too many questions wait for people
	Suspended                   // the agent is suspended
	Killed                      // the agent is killed
	Violation                   // of a named policy
	Stale                       // the rules changed while a person was asked
)

// Error is the reason why an act was not approved, as returned to callers.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Retryable is set if the same request can be approved later without any change.
	Retryable bool   `json:"retryable,omitempty"`
	Reason    Reason `json:"-"`
	Limit     string `json:"-"` // the configuration's key of the limit of a run that was met; empty for none
}

// Error returns the message with its code.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

// Type returns the error type that code in a sandbox sees.
func (e *Error) Type() string {
	switch e.Reason {
	case Malformed:
		return errortype.Validation
	case Looping:
		return errortype.Loop
	case TooOften, NoRate:
		return errortype.RateLimit
	case OverBudget:
		return errortype.Budget
	}
	return errortype.PolicyDenied
}

// Codes of refusals.
const (
	CodeConversation = "QWED-AGENT-CTX-001"   // no conversation_id
	CodeStep         = "QWED-AGENT-CTX-002"   // no step_number of 1 or more
	CodeContext      = "QWED-AGENT-CTX-003"   // the context has something else
	CodeStatePair    = "QWED-AGENT-STATE-001" // the state's hash or its source is missing
	CodeStateHash    = "QWED-AGENT-STATE-002"
	CodeStateSource  = "QWED-AGENT-STATE-003"
	CodeStateMissing = "QWED-AGENT-STATE-004"
	CodeUnknownType  = "QWED-AGENT-ACTION-001"
	CodeAction       = "QWED-AGENT-ACTION-002" // the action is malformed
	CodeLength       = "QWED-AGENT-LOOP-001"
	CodeReplay       = "QWED-AGENT-LOOP-002"
	CodeRepeated     = "QWED-AGENT-LOOP-003"
	CodeUnchanged    = "QWED-AGENT-LOOP-004"
	CodePolicy       = "QWED-AGENT-POLICY-001"   // the rules do not permit it
	CodeRefused      = "QWED-AGENT-APPROVAL-001" // a person refused
	CodeManyOpen     = "QWED-AGENT-APPROVAL-002" // too many questions of the agent, or of its account, are open
	CodeNobody       = "QWED-AGENT-APPROVAL-003" // no person can be asked
	CodeRate         = "QWED-AGENT-RATE-001"
	CodeRateUnknown  = "QWED-AGENT-RATE-002" // the limiter failed, which refuses the request
)

// reasons are the reasons of the codes that are not Forbidden.
var reasons = map[string]Reason{
	CodeConversation: Malformed, CodeStep: Malformed, CodeContext: Malformed, CodeStatePair: Malformed,
	CodeStateHash: Malformed, CodeStateSource: Malformed, CodeStateMissing: Malformed, CodeUnknownType: Malformed,
	CodeAction: Malformed,
	CodeLength: Looping, CodeReplay: Looping, CodeRepeated: Looping, CodeUnchanged: Looping,
	CodeRate: TooOften, CodeRateUnknown: NoRate, CodeManyOpen: ManyQuestions,
}

func refuse(code, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...), Reason: reasons[code]}
	e.Retryable = e.Reason == TooOften || e.Reason == NoRate || e.Reason == ManyQuestions
	return e
}

// ruling returns a ruling with everything that is known about the act.
func (e *evaluation) ruling(decision string) Ruling {
	r := Ruling{
		Decision: decision, AgentID: e.agent.ID, Conversation: e.context.Conversation, Step: e.context.Step,
		TrustLevel: e.agent.Trust, Rules: e.decided(),
	}
	if e.risk.Risk != policies.RiskUnknown {
		r.RiskLevel = e.risk.Risk.Level()
	}
	if len(e.rules.Rules) > 0 {
		r.Policies = e.rules.Policies()
	}
	if e.act.Kind == AnnouncedTool {
		r.Score = riskScore(e.action.Type, e.action.Parameters)
	}
	return r
}

// decided combines the decisions of the policies and of the rules about agents.
func (e *evaluation) decided() policies.Decision {
	if !e.hasPolicies() {
		d := e.rules
		d.Risk = e.risk.Risk
		return d
	}
	d := e.policies
	if e.risk.Risk > d.Risk.Known() {
		d.Risk = e.risk.Risk
	}
	d.Rules = slices.Concat(d.Rules, e.rules.Rules)
	if d.Allow {
		d.Approve = slices.Concat(d.Approve, e.rules.Approve)
		slices.Sort(d.Approve)
		d.Approve = slices.Compact(d.Approve)
		d.People = max(d.People, e.rules.People)
	}
	return d
}

func (e *evaluation) denied(why *Error) Ruling {
	r := e.ruling(Denied)
	if r.Error = why; e.rules.Allow { // they did not deny it
		r.Policies = nil
	}
	r.Rules.Allow, r.Rules.Approve, r.Rules.People = false, nil, 0
	return r
}

// exceeded returns the ruling that names the exceeded budget. It has no other effect: no step is
// committed and no person is asked.
func (e *evaluation) exceeded(err error) (Ruling, error) {
	var exceeded *budget.Exceeded
	if !errors.As(err, &exceeded) {
		return Ruling{}, err
	}
	r := e.ruling(BudgetExceeded)
	r.Rules.Allow, r.Rules.Approve, r.Rules.People = false, nil, 0
	r.Error = &Error{Code: exceeded.Code, Message: exceeded.Text, Retryable: !exceeded.Again.IsZero(),
		Reason: OverBudget}
	if !exceeded.Again.IsZero() {
		r.RetryAt = &exceeded.Again
	}
	return r, nil
}

// accounts returns the names of the accounts that the act is debited to.
func (e *evaluation) accounts() []string {
	accounts := []string{e.agent.LedgerAccount(), budget.Principal + ":" + e.agent.PrincipalID}
	if e.context.Conversation != "" && e.ledger.HasDefault(budget.Session) {
		accounts = append(accounts, budget.Session+":"+e.agent.ID+"/"+e.context.Conversation)
	}
	return accounts
}

// record writes the ruling to the audit log. That of an announcement is durable when record
// returns: the transaction has kept it, so that a decision waits for the disk once. The ruling of
// other acts becomes durable with the record of the act.
func (e *evaluation) record(ctx context.Context, r Ruling) error {
	telemetry.CountAgentAction(ctx, e.agent.ID, r.Decision, e.debited.Dollars())
	if !e.act.Recorded {
		if e.counted(r) {
			return nil
		}
		if err := e.recordCounted(ctx, e.agent.ID); err != nil {
			return err
		}
	}
	var err error
	switch {
	case e.kept != nil:
		err = e.noteKept(ctx)
	case e.isAnnounced(): // it was refused before the transaction
		err = e.log.Append(ctx, e.decisionRecord(r))
	case !e.act.Recorded:
		err = e.log.Note(ctx, e.decisionRecord(r))
	}
	return err
}

// decisionRecord returns the record of a ruling, or only of the debit if the caller records the
// ruling.
func (e *evaluation) decisionRecord(r Ruling) audit.Record {
	if e.act.Recorded {
		return e.recordOf(Ruling{}, e.debited, "debited for the use of a built-in tool")
	}
	return e.recordOf(r, e.debited, "")
}

func (e *evaluation) recordOf(r Ruling, cost budget.Amount, detail string) audit.Record {
	tool, server := truncate.Head(e.action.Type, agents.MaxName), ""
	if e.act.Kind == Call {
		server, tool = e.act.Request.Tool.ServerID, e.act.Request.Tool.Name
	}
	record := audit.Record{
		Kind: audit.KindAction,
		Identity: audit.Identity{Principal: e.agent.ID, CallerKind: "agent", SessionID: e.context.Conversation,
			RunID: e.act.RunID},
		Act: audit.Act{ToolName: tool, ServerID: server, CallID: e.act.CallID},
		Ruling: audit.Ruling{Decision: r.Decision, Policies: r.Policies, PolicyVersion: e.opts.Rules.Version(),
			Risk: r.RiskLevel, Approver: r.Approver},
		Detail: detail,
	}
	if e.at.Fingerprint != "" {
		record.ArgumentsHash = e.log.Hash([]byte(e.at.Fingerprint))
	}
	if r.Error != nil {
		record.ErrorType = r.Error.Code
	}
	if cost != 0 {
		record.CostUSD = cost.String()
	}
	return record
}
