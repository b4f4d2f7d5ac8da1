package agents

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// RunCode is the action type of a run in permissions, prices and activity. An agent whose
// permissions block "execute_code" cannot run code either.
const RunCode = "run_code"

const executeCode = "execute_code"

// Act is an operation that an agent is about to perform through Airlock itself: a run of code or a
// tool call.
type Act struct {
	AgentID string
	// Conversation is used if Context names no conversation.
	Conversation string
	// Context is the host's description of the step: the JSON of an action's context. All members
	// are optional, and Context may be empty.
	Context json.RawMessage
	// ServerID and Tool identify the called tool. Both are empty for a run.
	ServerID, Tool string
	// Arguments is an object: the arguments of the call, or the language and the code of a run.
	Arguments json.RawMessage
	Risk      policies.Risk   // of the tool, as policies know it
	Schema    json.RawMessage // the tool's input schema
	// Nested is set for a call made by code. The step was taken by its run.
	Nested bool
	// Longest is the maximum time for which a run keeps its sandbox.
	Longest time.Duration
	// Asks is set if other rules require a person's approval. Refused is the reason if they deny
	// the act, and empty if they permit it.
	Asks    bool
	Refused string
	// RunID and CallID identify the act in records.
	RunID, CallID string
}

// isRun reports whether the act is a run.
func (act Act) isRun() bool { return act.Tool == "" }

// names returns the names of the act in permissions and prices, the exact one first.
func (act Act) names() []string {
	if act.isRun() {
		return []string{RunCode, executeCode}
	}
	return namesOf(act.ServerID, act.Tool)
}

// name returns the name of the act in activity and records.
func (act Act) name() string { return act.names()[0] }

// priceNames is like names, but for a run it returns RunCode alone: a run in a sandbox has a price
// separate from that of the announced action execute_code.
func (act Act) priceNames() []string {
	if act.isRun() {
		return []string{RunCode}
	}
	return act.names()
}

// costs returns the amount debited before the act. A run is refunded the part that it has not used.
func (s *Service) costs(act Act) budget.Amount {
	return s.opts.Prices.of(act.priceNames()...) + s.secondsCost(act.Longest)
}

// secondsCost returns the price of a sandbox for a duration, rounded up.
func (s *Service) secondsCost(d time.Duration) budget.Amount {
	ms := budget.Amount(max(d, 0).Milliseconds())
	return (s.opts.Prices.Second*ms + 999) / 1000
}

// action returns the act in the form of an announced action, for its fingerprint.
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
