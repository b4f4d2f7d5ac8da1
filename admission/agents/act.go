package agents

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// RunCode is the type of a run, in permissions, prices and activity. An agent
// whose permissions block "execute_code" runs no code either.
const RunCode = "run_code"

const executeCode = "execute_code"

// Act is what an agent is about to do through Airlock itself: run code, or call
// a tool.
type Act struct {
	AgentID string
	// Conversation is that of an act whose Context names none.
	Conversation string
	// Context is what the host says of the act's step: JSON of an action's context,
	// of which nothing is needed; empty says nothing.
	Context json.RawMessage
	// ServerID and Tool name what is called; both are empty for a run.
	ServerID, Tool string
	// Arguments are those of the call, or the language and the code of a run: an object.
	Arguments json.RawMessage
	Risk      policies.Risk   // of the tool, as policies know it
	Schema    json.RawMessage // the tool's input schema
	// Nested is set for a call of code: its run has taken the step.
	Nested bool
	// Longest is how long a run may keep its sandbox.
	Longest time.Duration
	// Asks is set where other rules want a person to approve the act, Refused why
	// they do not permit it; empty: they do.
	Asks    bool
	Refused string
	// RunID and CallID name the act in records.
	RunID, CallID string
}

// isRun says whether the act is a run.
func (act Act) isRun() bool { return act.Tool == "" }

// names are what permissions and prices can call the act: the exact one first.
func (act Act) names() []string {
	if act.isRun() {
		return []string{RunCode, executeCode}
	}
	return namesOf(act.ServerID, act.Tool)
}

// name is what activity and records call the act.
func (act Act) name() string { return act.names()[0] }

// priceNames are names without that for the code of other programs: a run in a
// sandbox has a price of its own.
func (act Act) priceNames() []string {
	if act.isRun() {
		return []string{RunCode}
	}
	return act.names()
}

// costs returns what the act is debited before it is done, of which a run gets
// back what it has not used.
func (s *Service) costs(act Act) budget.Amount {
	return s.opts.Prices.of(act.priceNames()...) + s.secondsCost(act.Longest)
}

// secondsCost is the price of a sandbox for a time, rounded up.
func (s *Service) secondsCost(d time.Duration) budget.Amount {
	ms := budget.Amount(max(d, 0).Milliseconds())
	return (s.opts.Prices.Second*ms + 999) / 1000
}

// action is the act in the form of an announced one, for its fingerprint.
func (act Act) action() (Action, error) {
	action := Action{Type: act.name(), Parameters: json.RawMessage("null")}
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

// withoutLongNumbers returns a value in which numbers that RFC 8785 cannot write
// are texts: two that differ must not have one fingerprint.
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

// place reads what the host says of the step. A step of 0 is the next one.
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
