package policies

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/cedar-policy/cedar-go"
)

// The entity types that policies see.
const (
	typeUser   = cedar.EntityType("User")
	typeGroup  = cedar.EntityType("Group")
	typeAction = cedar.EntityType("Action")
	typeServer = cedar.EntityType("Server")
	typeTool   = cedar.EntityType("Tool")
	typeOpaque = cedar.EntityType("Opaque")
)

// anyTool is the action group that every tool is in: `action in Action::"call"`.
const anyTool = "call"

// maxSet is the longest list that a policy can look into. Cedar's sets can be
// made slow with chosen values, and no rule needs more.
const maxSet = 1000

// ToolID returns the name of a tool in policies: server and tool with a slash between them. A
// slash in the server's ID is written %2F, and % as %25, so that no two tools have one name.
func ToolID(serverID, name string) string {
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(serverID) + "/" + name
}

// translate returns a request as Cedar sees it. The entities may be those of other requests. costly
// reports that the rules could take too long for the arguments.
func (e *Engine) translate(req Request, risk Risk) (request cedar.Request, entities cedar.EntityMap, costly bool) {
	p := e.parties.of(partiesOf(req, risk), req.Facts)
	arguments := e.schemas.of(req.Tool.InputSchema)
	input, asPaths := converter{left: maxSetSteps}, converter{left: maxSetSteps}
	values, _ := input.record(req.Input, arguments)
	normal, _ := paths(req.Input).(map[string]any)
	normalised, _ := asPaths.record(normal, arguments)
	return cedar.Request{Principal: p.principal, Action: p.action, Resource: p.tool,
		Context: cedar.NewRecord(cedar.RecordMap{
			"input":   values,
			"paths":   normalised,
			"elicits": cedar.Boolean(req.Elicits),
			"session": req.Session.value(),
		})}, p.entities, e.exceeds(req.Input, input.longest, input.heaviest)
}

func hint(claim *bool, otherwise bool) bool {
	if claim == nil {
		return otherwise
	}
	return *claim
}

func (s Session) value() cedar.Value {
	if s.Unknown {
		return opaque("session")
	}
	servers := make([]cedar.Value, len(s.Servers))
	for i, id := range s.Servers {
		servers[i] = cedar.String(id)
	}
	return cedar.NewRecord(cedar.RecordMap{
		"calls":    cedar.Long(s.Calls),
		"runCalls": cedar.Long(s.RunCalls),
		"servers":  cedar.NewSet(servers...),
	})
}

// value turns a JSON value into Cedar's, and returns the weight of it. possible are the values that the
// tool's schema permits. What Cedar cannot hold exactly becomes an Opaque entity, never an
// approximation and never nothing: every comparison but == and != with it is a type error, and an
// error denies.
func (c *converter) value(v any, possible abstract) (made cedar.Value, weight int) {
	weight = 1
	switch v := v.(type) {
	case string:
		made, weight = cedar.String(v), weigh(v)
		c.longest = max(c.longest, len(v))
	case bool:
		made = cedar.Boolean(v)
	case json.Number:
		made = number(v, possible.kinds)
	case map[string]any:
		made, weight = c.record(v, possible)
	case []any:
		made, weight = c.set(v, possible)
	default:
		made = opaque("null")
	}
	if weight < maxWeight {
		c.heaviest = max(c.heaviest, weight)
	}
	return made, weight
}

// number gives a Decimal if a number is possible here and an integer is not. Otherwise it gives a Long for whole
// numbers of 64 bits, however they are written, and a Decimal for others. A Decimal has at most four decimal places.
func number(n json.Number, possible kinds) cedar.Value {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return opaque("number")
	}
	always := possible&kindDecimal != 0 && possible&kindLong == 0
	if !always && r.IsInt() && r.Num().IsInt64() {
		return cedar.Long(r.Num().Int64())
	}
	scaled := new(big.Rat).Mul(r, big.NewRat(10_000, 1))
	if !scaled.IsInt() || !scaled.Num().IsInt64() {
		return opaque("number")
	}
	d, err := cedar.NewDecimal(scaled.Num().Int64(), -4)
	if err != nil {
		return opaque("number")
	}
	return d
}

// opaqueWords are the words of the evaluator's messages for the type of an Opaque entity.
const opaqueWords = "(entity of type `" + string(typeOpaque) + "`)"

func opaque(kind cedar.String) cedar.Value { return cedar.NewEntityUID(typeOpaque, kind) }
