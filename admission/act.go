package admission

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// Kind is the kind of an act. It determines which steps of Decide apply.
type Kind int

// The kinds of acts.
const (
	Run             Kind = iota + 1 // of code in a sandbox
	Call                            // of a tool of an upstream server
	AnnouncedAction                 // of an agent that acts elsewhere (verify_action)
	AnnouncedTool                   // the same for the call of a tool (verify_tool)
	Verification                    // a request to the engines
	BuiltIn                         // of a tool of Airlock itself without external effects
	KernelAction                    // an action that a request to the kernel names
	Elicitation                     // a question of a server to the person behind a call that is under way
	Connection                      // of code in a sandbox to a host of the network
)

// Act is an operation that is about to happen.
type Act struct {
	Kind  Kind
	Agent string // the ID of the agent that acts; empty for other callers
	// Name is the name of the act in permissions, prices and activity. Runs, calls and announced
	// actions have none: theirs follows from the other members.
	Name string
	// Conversation is used if Context names no conversation.
	Conversation string
	// Context is the host's description of the step, as JSON. An announced action requires it. For
	// a run and a call all members are optional, and Context may be empty.
	Context json.RawMessage
	// Arguments is an object: the arguments of a call, the language and the code of a run, an
	// announced action, or the parameters of an announced tool.
	Arguments json.RawMessage

	// Request is the call, or the call during which a server asks a person.
	Request *policies.Request
	// Host is the host of a connection.
	Host  *policies.Connection
	Rules *Rules // as they were when the call arrived; nil means the rules in force
	Usage Usage  // of the run and the session of a call
	// Nested is set for a call made by code. The step was taken by its run.
	Nested bool

	// Execution describes an action of the kernel.
	Execution *Execution

	// Longest is the maximum time for which a run keeps its sandbox.
	Longest time.Duration

	// Engine is the engine that a verification needs. If it is empty, any engine may answer, which
	// an agent with a list of engines may not request.
	Engine string
	// Parts are the types of the parts of a batch. Their prices replace that of the batch.
	Parts []string
	// Recorded is set if the caller records the decision, so that only the debit is recorded.
	Recorded bool

	// RunID and CallID identify the act in records.
	RunID, CallID string
}

// AgentOf returns the ID of the agent that a caller is, or "" for other callers.
func AgentOf(who caller.Caller) string {
	if who.Kind != caller.Agent {
		return ""
	}
	return who.Principal
}

// RunCode is the action type of a run in permissions, prices and activity. An agent whose
// permissions block "execute_code" cannot run code either.
const RunCode = "run_code"

const executeCode = "execute_code"

// names returns the names of the act in permissions and prices, the exact one first.
func (act Act) names() []string {
	switch act.Kind {
	case Run:
		return []string{RunCode, executeCode}
	case Call:
		return namesOf(act.Request.Tool.ServerID, act.Request.Tool.Name)
	}
	return append([]string{act.Name}, act.Parts...)
}

// cost returns the amount debited before the act. A run is refunded the part that it has not used.
func (e *evaluation) cost() budget.Amount {
	prices := e.opts.Prices
	switch e.act.Kind {
	case AnnouncedTool: // the call has a price, but not the question about it
		return 0
	case Run: // the price of the announced action execute_code does not apply to a run in a sandbox
		return prices.of(RunCode) + e.secondsCost(e.act.Longest)
	case Call:
		return prices.of(e.act.names()...)
	}
	if len(e.act.Parts) == 0 {
		return prices.of(e.action.Type)
	}
	var sum budget.Amount
	for _, part := range e.act.Parts {
		sum = min(sum+prices.of(part), budget.MaxAmount)
	}
	return sum
}

// secondsCost returns the price of a sandbox for a duration, rounded up.
func (g *agentGate) secondsCost(d time.Duration) budget.Amount {
	ms := budget.Amount(max(d, 0).Milliseconds())
	return (g.opts.Prices.Second*ms + 999) / 1000
}

// read parses the act and its context.
func (e *evaluation) read() (err error) {
	act := e.act
	switch act.Kind {
	case Run, Call:
		e.context, err = act.place()
	case AnnouncedAction:
		e.context, err = ParseContext(act.Context)
	default:
		e.context.Conversation = act.Conversation
	}
	if err != nil {
		return err
	}
	if e.opts.RequireState && e.context.StateHash == "" && e.isStep() {
		return refuse(CodeStateMissing,
			"context.pre_action_state_hash and context.state_source are required here, for each step")
	}
	switch act.Kind {
	case Run, Call:
		e.action, err = act.asAction()
	case AnnouncedAction:
		e.action, err = ParseAction(act.Arguments)
	case AnnouncedTool:
		e.action, err = act.announcedTool()
	default:
		return nil // it has no fingerprint, because its repetitions are not counted
	}
	if err != nil {
		return err
	}
	e.at.Step, e.at.given = e.context.Step, e.context.Step > 0
	if e.at.Fingerprint, err = e.action.Fingerprint(); err != nil || e.context.StateHash == "" {
		return err
	}
	e.onState, err = e.action.fingerprintOn(e.context.StateHash)
	return err
}

// asAction returns a run or a call in the form of an announced action, for its fingerprint.
func (act Act) asAction() (Action, error) {
	action := Action{Type: act.names()[0], Parameters: json.RawMessage("null")}
	value, err := strictjson.Value(act.Arguments)
	if err != nil {
		return action, refuse(CodeAction, "the arguments: %s", err)
	}
	action.Parameters, err = canon.Marshal(withoutLongNumbers(value))
	if err != nil {
		return action, refuse(CodeAction, "the arguments: %s", err)
	}
	return action, nil
}

// announcedTool returns the announced call of a tool in the form of an announced action.
func (act Act) announcedTool() (Action, error) {
	if err := agents.CheckName("the tool's name", act.Name); err != nil {
		return Action{Type: act.Name}, refuse(CodeAction, "%s", err)
	}
	wrapped := map[string]any{"type": act.Name}
	if len(act.Arguments) > 0 {
		wrapped["parameters"] = act.Arguments
	}
	if len(act.Arguments) > maxRequest {
		return Action{}, refuse(CodeAction, "the parameters have %d bytes, and %d are allowed", len(act.Arguments),
			maxRequest)
	}
	raw, err := json.Marshal(wrapped)
	if err != nil {
		return Action{}, refuse(CodeAction, "the parameters are not JSON")
	}
	return ParseAction(raw)
}

// withoutLongNumbers returns a value in which numbers that RFC 8785 cannot represent are strings,
// so that two different numbers have different fingerprints.
func withoutLongNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = withoutLongNumbers(member)
		}
	case []any:
		for i, item := range v {
			v[i] = withoutLongNumbers(item)
		}
	case json.Number:
		if !isDouble(string(v)) {
			return string(v)
		}
	}
	return value
}

// place parses the host's description of the step. A step of 0 is the next one.
func (act Act) place() (Context, error) {
	c := Context{Conversation: act.Conversation}
	if len(act.Context) == 0 {
		return c, nil
	}
	if len(act.Context) > maxRequest {
		return c, refuse(CodeContext, "the context has %d bytes, and %d are allowed", len(act.Context), maxRequest)
	}
	m, err := members(act.Context, contextMembers)
	if err != nil {
		return c, refuse(CodeContext, "context: %s", err)
	}
	if m["conversation_id"] != nil {
		if c.Conversation, err = conversation(m["conversation_id"]); err != nil {
			return c, err
		}
	}
	if m["step_number"] != nil && !act.Nested {
		if c.Step, err = step(m["step_number"]); err != nil {
			return c, err
		}
	}
	return c, c.readState(m)
}
