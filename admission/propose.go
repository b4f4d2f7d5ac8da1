package admission

import (
	"encoding/json"
	"errors"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// Proposal is a rule that approves calls like one in advance, and what it would have covered.
type Proposal struct {
	policies.Proposal
	Coverage Coverage `json:"coverage"`
}

// Coverage has the calls of a period that a rule would have permitted without asking, as far as the
// arguments of calls were kept.
type Coverage struct {
	Calls   int `json:"calls"`   // of the tool by the principal
	Covered int `json:"covered"` // by the rule
	Unknown int `json:"unknown"` // their arguments were not kept
	// Answers has the answers that people gave about covered calls, as the log has them, with their
	// number.
	Answers map[string]int `json:"answers"`
	// Examples are the newest covered calls, the oldest first; at most MaxExamples.
	Examples []Example `json:"examples"`
}

// Example is a covered call.
type Example struct {
	Time      string `json:"time"` // RFC 3339, UTC
	RunID     string `json:"run_id"`
	CallID    string `json:"call_id"`
	Approval  string `json:"approval,omitempty"` // the answer of a person
	Arguments string `json:"arguments"`          // JSON without secrets
}

// MaxExamples is the maximum number of examples in a Coverage.
const MaxExamples = 20

// Past selects the calls of the past that a proposed rule is compared with.
type Past struct {
	Log, Keys string // the directories of the audit log and of its keys
	audit.Period
	Clean func(text string) string // removes secrets
}

// ErrSecret is returned by RuleSet.Propose for a call whose rule would have a secret in it.
var ErrSecret = errors.New("an argument of the call looks like a secret, which does not belong in a policy")

// Propose returns a rule by which calls of who to a tool, like one with these arguments, are approved by
// a person in advance. free names arguments that may have any value. The error is from
// catalog.Snapshot.Lookup, policies.Propose or audit.EachPast, or is ErrNoObject or ErrSecret.
func (r RuleSet) Propose(who caller.Caller, serverID, toolName, arguments, by string, free []string, past Past) (
	Proposal, error) {
	explained, err := r.Explain(who, serverID, toolName, arguments)
	if err != nil {
		return Proposal{}, err
	}
	rule, err := policies.Propose(explained.Request, by, free)
	if err != nil {
		return Proposal{}, err
	}
	if past.Clean(rule.Rule) != rule.Rule {
		return Proposal{}, ErrSecret
	}
	coverage, err := past.covered(rule, explained.Request.Tool, who)
	return Proposal{rule, coverage}, err
}

// covered applies a rule to the calls of its principal and tool.
func (p Past) covered(rule policies.Proposal, tool catalog.Tool, who caller.Caller) (Coverage, error) {
	c := Coverage{Answers: map[string]int{}, Examples: []Example{}}
	err := audit.EachPast(p.Log, p.Keys, audit.ReportOptions{Period: p.Period, Principal: who.Principal,
		Server: tool.ServerID, Tool: tool.Name}, func(call audit.Record, values json.RawMessage) error {
		if call.Issuer != who.Issuer {
			return nil
		}
		c.Calls++
		decoded, err := strictjson.Value(values)
		input, ok := decoded.(map[string]any)
		switch {
		case err != nil || !ok:
			c.Unknown++
		case rule.Covers(input):
			c.add(call, p.Clean(string(values)))
		}
		return nil
	})
	if errors.Is(err, audit.ErrNoArgumentsKey) {
		return c, nil
	}
	return c, err
}

func (c *Coverage) add(call audit.Record, arguments string) {
	c.Covered++
	if call.Approval != "" {
		c.Answers[call.Approval]++
	}
	if len(c.Examples) == MaxExamples {
		c.Examples = c.Examples[1:]
	}
	c.Examples = append(c.Examples, Example{call.Time, call.RunID, call.CallID, call.Approval, arguments})
}
