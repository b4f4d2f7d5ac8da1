package policies

import (
	"fmt"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// connectAction is the action of connections: `action == Action::"connect"`. No tool has this ID, which has no slash.
const connectAction = "connect"

// typeHost is the entity type of hosts.
const typeHost = cedar.EntityType("Host")

// typeContained is the entity type of contained servers, which are principals of connections.
const typeContained = cedar.EntityType("ContainedServer")

// connectSchema describes the requests of DecideConnect.
const connectSchema = `entity ContainedServer in [Group] = {"name": String, "groups": Set<String>, "claims": {}};
entity Host = {"name": String, "port": Long};
action "connect" appliesTo {
  principal: [User, ContainedServer], resource: [Host],
  context: {"session": Session},
};
`

// Connection is a connection from a sandbox to a host.
type Connection struct {
	Principal string       // the owner of the session, or the ID of the server
	Facts     caller.Facts // about the owner
	Server    bool         // a contained server connects, not the code of a run
	Host      string       // in lower case
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
		principal: userEntity(principal, c.Facts),
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
func namesConnect(policy *cedar.Policy) bool { return namesAction(policy, connectAction) }
