package policies

import (
	_ "embed"

	"github.com/cedar-policy/cedar-go"
)

//go:embed agents.cedar
var agentsSource []byte

// Agents returns the policy file that bounds what agents do by themselves.
func Agents() File {
	return File{Name: "agents.cedar", Source: agentsSource}
}

// The entity types that rules about agents see beside those of tools.
const (
	typeAgent = cedar.EntityType("Agent")
	typeAct   = cedar.EntityType("Act")
)

// ActCategory is the category of a tool in an agent's list of tools.
type ActCategory string

// The categories.
const (
	ActSafe      ActCategory = "safe"
	ActDangerous ActCategory = "dangerous"
	ActOther     ActCategory = "other"
)

// Act is what an agent wants to do. The zero value of Trust is the least.
type Act struct {
	AgentID string
	Trust   int      // 0 to 3
	Active  bool     // neither suspended nor ended
	Engines []string // that the agent may use; nil for all

	Type     string // such as "read_file"
	Risk     Risk
	Category ActCategory
	Blocked  bool   // by the agent's own permissions
	Engine   string // that it needs; empty for none
}

// DecideAct applies the rules to an act, as Decide does to a call.
func (e *Engine) DecideAct(act Act) Decision {
	if e == nil {
		return Decision{Reasons: []string{"no policy is loaded"}}
	}
	request, entities := translateAct(act)
	return e.authorize(e.rules, request, entities, Decision{})
}

func translateAct(act Act) (cedar.Request, cedar.EntityMap) {
	status := "inactive"
	if act.Active {
		status = "active"
	}
	engines := make([]cedar.Value, len(act.Engines))
	for i, engine := range act.Engines {
		engines[i] = cedar.String(engine)
	}
	attributes := cedar.RecordMap{
		"type":     cedar.String(act.Type),
		"risk":     cedar.String(act.Risk.Level()),
		"level":    cedar.Long(act.Risk.number()),
		"category": cedar.String(act.Category),
		"blocked":  cedar.Boolean(act.Blocked),
	}
	if act.Engine != "" {
		attributes["engine"] = cedar.String(act.Engine)
	}
	principal := cedar.NewEntityUID(typeAgent, cedar.String(act.AgentID))
	resource := cedar.NewEntityUID(typeAct, cedar.String(act.Type))
	entities := cedar.EntityMap{
		principal: {UID: principal, Attributes: cedar.NewRecord(cedar.RecordMap{
			"trust": cedar.Long(act.Trust), "status": cedar.String(status),
			"engines": cedar.NewSet(engines...), "anyEngine": cedar.Boolean(act.Engines == nil),
		})},
		resource: {UID: resource, Attributes: cedar.NewRecord(attributes)},
	}
	return cedar.Request{
		Principal: principal, Action: cedar.NewEntityUID(typeAction, "act"), Resource: resource,
		Context: cedar.NewRecord(nil),
	}, entities
}
