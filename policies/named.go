package policies

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/nearest"
)

//go:embed kernel.cedar
var kernelSource []byte

// Kernel returns the policy file with the named policies that are shipped.
func Kernel() File {
	return File{Name: "kernel.cedar", Source: kernelSource}
}

// Named are policies that a request chooses by name: rules with an annotation
// @policy("name"). It is immutable and may be used concurrently.
type Named struct {
	engine *Engine
	names  []string
}

// LoadNamed compiles the shipped named policies and those of the files, all or none.
func LoadNamed(files ...File) (*Named, error) {
	engine, err := Load(append([]File{Kernel()}, files...)...)
	if err != nil {
		return nil, err
	}
	n := &Named{engine: engine}
	for _, r := range engine.info {
		if r.named != "" && !slices.Contains(n.names, r.named) {
			n.names = append(n.names, r.named)
		}
		if len(r.obligations) > 0 {
			return nil, fmt.Errorf("policy file %q line %d: a named policy permits or forbids, and has no @%s", r.File,
				r.Line, r.obligations[0].key)
		}
	}
	slices.Sort(n.names)
	return n, nil
}

// Names are the names that a request can choose from, in order.
func (n *Named) Names() []string { return slices.Clone(n.names) }

// Version is the digest of all rules.
func (n *Named) Version() string { return n.engine.Version() }

// Execution is an action of an agent, to be decided by the policies that its request names.
// The caller supplies the findings about its parameters.
type Execution struct {
	AgentID string
	Trust   int  // 0 to 3
	Active  bool // neither suspended nor ended

	Action   string         // such as "database_query"
	Policies []string       // the names
	Effect   string         // "read", "write", "destroy" or "unclear"
	SQL      bool           // SQL in the parameters decided that
	Personal []string       // kinds of personal data in the parameters
	Secrets  []string       // kinds of credentials in the parameters
	Input    map[string]any // the parameters, as internal/schema.Decode returns them
}

// Unknown returns a sentence about the first unknown name, or an empty string if all names are
// known.
func (n *Named) Unknown(names []string) string {
	for _, name := range names {
		if !slices.Contains(n.names, name) {
			return fmt.Sprintf("Unknown policy %q%s: the policies are %s", name, nearest.Hint(name, n.names),
				strings.Join(n.names, ", "))
		}
	}
	return ""
}

// Decide applies the named policies. If it denies, reason is the sentence of the first rule,
// in their order, that forbids. An unknown name denies.
func (n *Named) Decide(e Execution) (d Decision, reason string) {
	if unknown := n.Unknown(e.Policies); unknown != "" {
		return Decision{Reasons: []string{unknown}}, unknown
	}
	input := converter{left: maxSetSteps}
	parameters, _ := input.record(e.Input, anything())
	if n.engine.exceeds(e.Input, input.longest, input.heaviest) {
		return Decision{Reasons: []string{tooLarge}}, tooLarge
	}
	request, entities := translateExecution(e, parameters)
	d = n.engine.authorize(n.engine.rules, request, entities, Decision{})
	if d.Allow {
		return d, ""
	}
	for _, rule := range d.Rules {
		if r := n.engine.info[cedar.PolicyID(rule.ID)]; r.Forbid && r.reason != "" {
			return d, r.reason
		}
	}
	return d, strings.Join(d.Reasons, "; ")
}

func translateExecution(e Execution, parameters cedar.Record) (cedar.Request, cedar.EntityMap) {
	status := "inactive"
	if e.Active {
		status = "active"
	}
	principal := cedar.NewEntityUID(typeAgent, cedar.String(e.AgentID))
	resource := cedar.NewEntityUID(typeAct, cedar.String(e.Action))
	entities := cedar.EntityMap{
		principal: {UID: principal, Attributes: cedar.NewRecord(
			cedar.RecordMap{"trust": cedar.Long(e.Trust), "status": cedar.String(status)})},
		resource: {UID: resource, Attributes: cedar.NewRecord(cedar.RecordMap{"type": cedar.String(e.Action)})},
	}
	return cedar.Request{
		Principal: principal, Action: cedar.NewEntityUID(typeAction, "execute"), Resource: resource,
		Context: cedar.NewRecord(cedar.RecordMap{
			"policies": texts(e.Policies), "effect": cedar.String(e.Effect), "sql": cedar.Boolean(e.SQL),
			"personal": texts(e.Personal), "secrets": texts(e.Secrets), "input": parameters,
		}),
	}, entities
}

func texts(list []string) cedar.Set {
	values := make([]cedar.Value, len(list))
	for i, text := range list {
		values[i] = cedar.String(text)
	}
	return cedar.NewSet(values...)
}
