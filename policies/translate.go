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

// translate returns a request as Cedar sees it. The entities may be those of other requests.
func (e *Engine) translate(req Request, risk Risk) (cedar.Request, cedar.EntityMap) {
	p := e.parties.of(partiesOf(req, risk))
	return cedar.Request{Principal: p.principal, Action: p.action, Resource: p.tool, Context: e.context(req)},
		p.entities
}

func hint(claim *bool, otherwise bool) bool {
	if claim == nil {
		return otherwise
	}
	return *claim
}

func (e *Engine) context(req Request) cedar.Record {
	arguments := e.schemas.of(req.Tool.InputSchema)
	return cedar.NewRecord(cedar.RecordMap{
		"input":   record(req.Input, arguments),
		"paths":   pathContext(req.Input, arguments),
		"elicits": cedar.Boolean(req.Elicits),
		"session": req.Session.value(),
	})
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

// record turns a JSON object with these possible values into a record. A member that is null is left out:
// for `has` it is absent, as it is for most tools.
func record(object map[string]any, possible abstract) cedar.Record {
	members := make(cedar.RecordMap, len(object))
	for name, v := range object {
		if v != nil {
			of, _ := possible.member(name)
			members[cedar.String(name)] = value(v, of)
		}
	}
	return cedar.NewRecord(members)
}

// value turns a JSON value into Cedar's. What Cedar cannot hold exactly becomes
// an Opaque entity, never an approximation and never nothing: every comparison
// but == and != with it is a type error, and an error denies.
func value(v any, possible abstract) cedar.Value {
	switch v := v.(type) {
	case string:
		return cedar.String(v)
	case bool:
		return cedar.Boolean(v)
	case json.Number:
		return number(v, possible.kinds)
	case map[string]any:
		return record(v, possible)
	case []any:
		return set(v, possible)
	default:
		return opaque("null")
	}
}

func set(items []any, possible abstract) cedar.Value {
	if len(items) > maxSet {
		return opaque("list")
	}
	of := anything()
	if possible.element != nil {
		of = *possible.element
	}
	values := make([]cedar.Value, len(items))
	for i, item := range items {
		values[i] = value(item, of)
	}
	return cedar.NewSet(values...)
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

func opaque(kind cedar.String) cedar.Value { return cedar.NewEntityUID(typeOpaque, kind) }
