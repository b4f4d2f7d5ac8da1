// Package risk determines the risk of an act, in the same way for actions that agents announce, for
// their tool calls, for the kernel's actions and for the gateway's tools.
package risk

import (
	"context"
	"encoding/json"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

// Declared is the known information about a configured tool.
type Declared struct {
	// Risk is the result of policies.EffectiveRisk for the tool's pinned definition.
	Risk policies.Risk
	// Schema is the tool's input schema; it may be empty.
	Schema json.RawMessage
	// SQL are the arguments that contain SQL, as the operator knows.
	SQL []string
}

// Subject is an act whose risk is assessed.
type Subject struct {
	// Name is the action's type, or the tool's name without its server.
	Name string
	// Tools are the called tool, or the configured tools with the announced name.
	Tools []Declared
	// Call is set if the tool is called rather than announced.
	Call bool
	// Arguments are decoded by internal/schema.Decode: everything that the act passes on. A list has the parameters of
	// an announced action and its other members.
	Arguments any
}

// Assessment is the risk of an act and what it is derived from.
type Assessment struct {
	Meaning
	// Named is set if the name alone has a meaning.
	Named bool
	// Raised describes what raised the risk above the one of the name, for people and models; it has no values.
	Raised string
}

// Assess returns the risk of an act. It starts with the risk of the name, which the declared risk of the tool and
// the content of the arguments can only raise. It takes linear time in the size of the arguments. The error is that
// of ctx.
func Assess(ctx context.Context, s Subject) (Assessment, error) {
	a := Assessment{}
	a.Meaning, a.Named = MeaningOf(s.Name)
	if !a.Named {
		a.Meaning = Meaning{Risk: policies.RiskLow, Category: policies.ActOther}
	}
	h := hints{schemas: make([]map[string]any, 0, len(s.Tools))}
	for _, tool := range s.Tools {
		// An announced action of a known name need not be a call of a tool of this name.
		if s.Call || !a.Named || tool.Risk != policies.RiskUnknown {
			a.raise(tool.Risk.Known(), "the risk of the tool is "+tool.Risk.String(), "")
		}
		h.schemas = append(h.schemas, decodeSchema(tool.Schema))
		h.sql = append(h.sql, tool.SQL...)
	}
	c := newContent(ctx, a.Meaning, a.Named)
	parts, announced := s.Arguments.([]any)
	if !announced {
		parts = []any{s.Arguments}
	}
	for _, part := range parts {
		c.value("arguments", part, h, 0)
	}
	c.joined("arguments", parts, anything, 0)
	a.raise(c.found.risk, c.found.what, c.found.engine)
	return a, ctx.Err()
}

func (a *Assessment) raise(risk policies.Risk, why, engine string) {
	if a.Engine == "" {
		a.Engine = engine
	}
	if risk > a.Risk {
		a.Risk, a.Raised = risk, why
	}
}

func decodeSchema(raw json.RawMessage) map[string]any {
	var object map[string]any
	if len(raw) == 0 || strictjson.UnmarshalOpen(raw, &object) != nil {
		return nil // a schema may be true, and one that cannot be read gives no hints
	}
	return object
}
