package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// connectAction is the action of connections: `action == Action::"connect"`. No tool has this ID, which has no slash.
const connectAction = "connect"

// typeHost is the entity type of hosts.
const typeHost = cedar.EntityType("Host")

// typeContained is the entity type of contained servers, which are principals of connections.
const typeContained = cedar.EntityType("ContainedServer")

// connectSchema describes the requests of DecideConnect.
const connectSchema = `entity ContainedServer = {"name": String};
entity Host = {"name": String, "port": Long};
action "connect" appliesTo {
  principal: [User, ContainedServer], resource: [Host],
  context: {"session": Session},
};
`

// Connection is a connection from a sandbox to a host.
type Connection struct {
	Principal string // the owner of the session, or the ID of the server
	Server    bool   // a contained server connects, not the code of a run
	Host      string // in lower case
	Port      uint16
	Session   Session
}

// DecideConnect evaluates the rules for a connection. Only permits whose scope names Action::"connect" count: a permit
// for all actions is about tools. All forbids count, and one that cannot be evaluated, because it is about tools,
// denies.
func (e *Engine) DecideConnect(c Connection) Decision {
	d := Decision{Risk: RiskUnknown}
	if e == nil {
		d.Reasons = []string{"no policy is loaded"}
		return d
	}
	kind := typeUser
	if c.Server {
		kind = typeContained
	}
	principal := cedar.NewEntityUID(kind, cedar.String(c.Principal))
	host := cedar.NewEntityUID(typeHost, cedar.String(fmt.Sprintf("%s:%d", c.Host, c.Port)))
	entities := cedar.EntityMap{
		principal: {UID: principal, Attributes: cedar.NewRecord(cedar.RecordMap{"name": cedar.String(c.Principal)})},
		// The attributes of tools that rules for all actions commonly read have the values of an unknown tool.
		host: {UID: host, Attributes: cedar.NewRecord(cedar.RecordMap{
			"name": cedar.String(c.Host), "port": cedar.Long(c.Port), "risk": cedar.String(RiskUnknown.String()),
			"allowed": cedar.False, "denied": cedar.False, "flagged": cedar.False,
		})},
	}
	request := cedar.Request{Principal: principal, Action: cedar.NewEntityUID(typeAction, connectAction),
		Resource: host,
		Context:  cedar.NewRecord(cedar.RecordMap{"session": c.Session.value(), "elicits": cedar.False})}
	return e.authorize(e.connects, request, entities, d)
}

// namesConnect reports whether the scope of a policy names Action::"connect".
func namesConnect(policy *cedar.Policy) bool {
	return slices.ContainsFunc(referencesOf(policy).scope.actions, func(action cedar.EntityUID) bool {
		return action.Type == typeAction && string(action.ID) == connectAction
	})
}

// connectValidator is Cedar's validator for policies about connections.
var connectValidator = sync.OnceValues(func() (*validate.Validator, error) {
	var s schema.Schema
	if err := s.UnmarshalCedar([]byte(schemaHead + connectSchema)); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return validate.New(resolved), nil
})

// connect checks a policy whose scope names Action::"connect", with the validator of Cedar.
func (c *checker) connect() []Problem {
	if len(referencesOf(c.policy).scope.actions) > 1 {
		c.problem(connectAction, `write a separate policy for Action::"connect"`)
		return c.found
	}
	validator, err := connectValidator()
	if err == nil {
		err = validator.Policy("policy", (*ast.Policy)(c.policy.AST()))
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if errors.Unwrap(err) == nil {
			c.problem("", "%s", strings.TrimPrefix(err.Error(), "policy: "))
		}
	}
	return c.found
}
