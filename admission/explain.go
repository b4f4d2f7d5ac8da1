package admission

import (
	"cmp"
	"errors"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// RuleSet has the operator's rules and the tools that they apply to.
type RuleSet struct {
	Files    []policies.File
	Operator policies.Operator
	Snapshot *catalog.Snapshot
	Roles    []string // that can approve
}

// Explanation is the decision about a call, as if it were the first of its session.
type Explanation struct {
	Request  policies.Request
	Decision policies.Decision
	// Cure is what the operator can change so that the call is not asked about; it may be empty.
	Cure string
	// Unfit is set if the arguments do not fit the tool's schema, so that the broker would reject
	// the call before it evaluates policies. It is nil if no arguments were given.
	Unfit error
}

// WhyRisk explains in words why the tool has its risk.
func (e Explanation) WhyRisk() string { return policies.WhyRisk(e.Request) }

// ErrNoObject is returned if the arguments are not a JSON object.
var ErrNoObject = errors.New("the arguments are not a JSON object")

// Explain decides a call of a caller. If arguments is empty, the call is decided without arguments and
// not checked against the tool's schema. The error is from catalog.Snapshot.Lookup, ErrNoObject, or a
// mistake in the rules.
func (r RuleSet) Explain(who caller.Caller, serverID, toolName, arguments string) (Explanation, error) {
	tool, err := r.Snapshot.Lookup(serverID, toolName)
	if err != nil {
		return Explanation{}, err
	}
	decoded, err := strictjson.Value([]byte(cmp.Or(arguments, "{}")))
	input, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return Explanation{}, ErrNoObject
	}
	engine, err := policies.Load(r.Files...)
	if err != nil {
		return Explanation{}, err
	}
	request := policies.Request{
		Principal: who.Name(), Facts: who.Facts, Tool: tool, Settings: r.Operator.Settings(
			serverID, toolName, r.Snapshot.Flags(serverID, toolName)), Input: input,
	}
	engine = engine.WithRoles(r.Roles)
	explained := Explanation{Request: request, Decision: engine.Decide(request)}
	explained.Cure = engine.HowToAllow(request, explained.Decision)
	if arguments != "" {
		explained.Unfit = fits(tool, decoded)
	}
	return explained, nil
}

// ExplainConnect returns the decision of the rules about a connection, as the first one of its session.
func (r RuleSet) ExplainConnect(c policies.Connection) (policies.Decision, error) {
	engine, err := policies.Load(r.Files...)
	if err != nil {
		return policies.Decision{}, err
	}
	return engine.DecideConnect(c), nil
}

// fits checks arguments as the broker does before it asks the policies.
func fits(tool catalog.Tool, arguments any) error {
	input, err := schema.Compile(tool.InputSchema)
	if err != nil {
		return err
	}
	return input.Check(arguments)
}
