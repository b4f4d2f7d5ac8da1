package system

import (
	"cmp"
	"errors"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// RuleSet are the operator's rules with the tools that they are about.
type RuleSet struct {
	Files    []policies.File
	Operator policies.Operator
	Snapshot *catalog.Snapshot
}

// ReadRuleSet reads the rules that a configuration names.
func ReadRuleSet(c *config.Config, snapshot *catalog.Snapshot) (RuleSet, error) {
	files, err := PolicyFiles(c)
	if err != nil {
		return RuleSet{}, err
	}
	operator, err := OperatorSettings(c)
	return RuleSet{files, operator, snapshot}, err
}

// RuleSet returns the rules that are in force, with the tools that the caller sees.
func (s *System) RuleSet(who caller.Caller) (RuleSet, error) {
	s.rules.mu.Lock()
	c, files := s.rules.config, s.rules.files
	s.rules.mu.Unlock()
	operator, err := OperatorSettings(c)
	return RuleSet{files, operator, s.Snapshot(who)}, err
}

// Explanation is what would happen to a call if it were the first of its session.
type Explanation struct {
	Request  policies.Request
	Decision policies.Decision
	// Unfit says why policies would not be asked: the arguments do not fit the tool's
	// schema. It is nil where they do, and where none were given.
	Unfit error
}

// WhyRisk says in words why the tool has the risk that it has.
func (e Explanation) WhyRisk() string { return policies.WhyRisk(e.Request) }

// ErrNoObject says that arguments are no JSON object.
var ErrNoObject = errors.New("the arguments are no JSON object")

// Explain decides a call of a principal, as caller.Caller.Name says it. Empty
// arguments: none are given, and none are missed. The error is one of
// catalog.Snapshot.Lookup, ErrNoObject, or that the rules have a mistake.
func (r RuleSet) Explain(principal, serverID, toolName, arguments string) (Explanation, error) {
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
		Principal: principal, Tool: tool, Settings: r.Operator.Settings(serverID, toolName, r.Snapshot.Flags(serverID, toolName)), Input: input,
	}
	explained := Explanation{Request: request, Decision: engine.Decide(request)}
	if arguments != "" {
		explained.Unfit = fits(tool, decoded)
	}
	return explained, nil
}

// fits checks arguments as the broker does before it asks the policies.
func fits(tool catalog.Tool, arguments any) error {
	input, err := schema.Compile(tool.InputSchema)
	if err != nil {
		return err
	}
	return input.Check(arguments)
}
