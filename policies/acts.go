package policies

import (
	_ "embed"
	"strings"
	"sync"

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

// DecideAct applies the rules to an act, as Decide does to a call. The caller must not change the lists of the
// decision, because later decisions share them.
func (e *Engine) DecideAct(act Act) Decision {
	if e == nil {
		return Decision{Reasons: []string{"no policy is loaded"}}
	}
	return e.acts.of(act, func() Decision {
		request, entities := translateAct(act)
		return e.authorize(e.rules, request, entities, Decision{})
	})
}

// maxActs is how many decisions about acts an engine caches; types and engines longer than
// maxActText bytes are not cached.
const maxActs, maxActText = 4096, 256

// actCache caches decisions about acts: they depend on nothing but the act. It is safe for concurrent
// use. The zero value is ready to use.
type actCache struct {
	mu    sync.Mutex // guards known
	known map[actKey]Decision
}

// actKey is an act without its list of engines, and the list as a text.
type actKey struct {
	agent, kind, engine, engines string
	trust                        int
	active, blocked, anyEngine   bool
	risk                         Risk
	category                     ActCategory
}

// of returns the decision about an act, which make determines.
func (c *actCache) of(act Act, make func() Decision) Decision {
	key := actKey{act.AgentID, act.Type, act.Engine, strings.Join(act.Engines, "\x00"), act.Trust, act.Active,
		act.Blocked, act.Engines == nil, act.Risk, act.Category}
	if len(key.kind)+len(key.engines) > maxActText {
		return make()
	}
	c.mu.Lock()
	d, ok := c.known[key]
	c.mu.Unlock()
	if !ok {
		d = make()
		c.mu.Lock()
		if c.known == nil || len(c.known) >= maxActs {
			c.known = map[actKey]Decision{}
		}
		c.known[key] = d
		c.mu.Unlock()
	}
	return d
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
