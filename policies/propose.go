package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxFixed is the size, in bytes of JSON, of the largest argument that a proposed rule compares.
const maxFixed = 200

// maxProposed is the size of the longest rule that is proposed, in bytes. Nobody would review a longer one.
const maxProposed = 8 << 10

// Proposal is a rule that approves calls like one in advance.
type Proposal struct {
	Rule string `json:"rule"` // in Cedar
	// Free are the arguments that may have any value, in order.
	Free []string `json:"free"`

	call   Request // that the rule was made from
	engine *Engine
}

// Covers reports whether the rule permits a call of the same principal and tool with other arguments.
func (p Proposal) Covers(input map[string]any) bool {
	p.call.Input = input
	return p.engine.Decide(p.call).Allow
}

// ErrNoRule is returned by Propose if no rule in Cedar permits the call and few others.
var ErrNoRule = errors.New("no rule can describe calls like this one")

// Propose returns a rule with @approved(by) that permits calls like req: of the same principal and tool,
// while the tool keeps its risk, with arguments like those of req.
//
//   - A path that begins with a directory, such as /srv/docs/a, may be any path in that directory, or below.
//   - A short argument must be equal. A long one may have any value, like those that free names.
//   - An argument of the tool's schema that req does not have must be absent.
//
// Arguments that the schema does not declare are not restricted. The error is ErrNoRule, or names an
// argument in free that req does not have, or one with a value that Cedar does not have.
func Propose(req Request, by string, free []string) (Proposal, error) {
	for _, name := range free {
		if _, ok := req.Input[name]; !ok {
			return Proposal{}, fmt.Errorf("the call has no argument %q", name)
		}
	}
	p := Proposal{Free: []string{}}
	risk := EffectiveRisk(req.Tool, req.Settings)
	conditions := []string{"resource.risk == " + literal(cedar.String(risk.String())), "!context.elicits"}
	if len(req.Settings.Flags) == 0 {
		conditions = append(conditions, "!resource.flagged")
	}
	types := (&schemaCache{}).of(req.Tool.InputSchema)
	c := converter{left: maxSetSteps}
	record, _ := c.record(req.Input, types)
	for _, name := range slices.Sorted(maps.Keys(req.Input)) {
		value, ok := record.Get(cedar.String(name))
		if !ok { // null, which is absent in Cedar
			conditions = append(conditions, absent(name))
			continue
		}
		condition := likeness(name, req.Input[name], value)
		switch {
		case slices.Contains(free, name), condition == "":
			p.Free = append(p.Free, name)
		case strings.Contains(condition, string(typeOpaque)+`::"`):
			return Proposal{}, fmt.Errorf("the argument %q has a value that no rule can compare", name)
		default:
			conditions = append(conditions, condition)
		}
	}
	for _, name := range omitted(req) {
		conditions = append(conditions, absent(name))
	}
	of := partiesOf(req, risk).translate(req.Facts)
	p.Rule = fmt.Sprintf("@id(%s)\n@approved(%s)\npermit (principal == %s, action == %s,\n  resource == %s)\nwhen {\n"+
		"  %s\n};\n", literal(cedar.String(ruleID(req, conditions))), literal(cedar.String(by)), literal(of.principal),
		literal(of.action), literal(of.tool), strings.Join(conditions, " &&\n  "))
	var err error
	p.call = req
	if p.engine, err = Load(File{Name: "proposal", Source: []byte(p.Rule)}); err != nil || len(p.Rule) > maxProposed ||
		!p.Covers(req.Input) {
		return Proposal{}, ErrNoRule
	}
	return p, nil
}

// likeness is the condition that an argument is like a value; it is empty if any value is.
func likeness(name string, given any, value cedar.Value) string {
	member := literal(cedar.String(name))
	if text, ok := given.(string); ok && pathBegins.MatchString(text) {
		if clean, ok := normalPath(text); ok && path.Dir(clean) != "/" && path.Dir(clean) != "." {
			pattern := cedar.NewPattern(cedar.String(path.Dir(clean)+"/"), cedar.Wildcard{})
			return fmt.Sprintf("context.paths has %s && context.paths[%s] like %s", member, member,
				pattern.MarshalCedar())
		}
	}
	if text, err := json.Marshal(given); err != nil || len(text) > maxFixed {
		return ""
	}
	return fmt.Sprintf("context.input has %s && context.input[%s] == %s", member, member, literal(value))
}

// absent is the condition that there is no such argument.
func absent(name string) string { return "!(context.input has " + literal(cedar.String(name)) + ")" }

// omitted returns the arguments that the tool's schema declares and the request does not have, in order.
func omitted(req Request) []string {
	decoded, _ := strictjson.Value(req.Tool.InputSchema)
	object, _ := decoded.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(properties)), func(name string) bool {
		_, given := req.Input[name]
		return given
	})
}

// ruleID returns an ID that is the same for equal rules of one tool and principal.
func ruleID(req Request, conditions []string) string {
	digest := canon.Digest([]byte(req.Principal + "\n" + strings.Join(conditions, "\n")))
	_, digest, _ = strings.Cut(digest, ":")
	return fmt.Sprintf("approved.%s.%s.%.8s", req.Tool.ServerID, req.Tool.Name, digest)
}

// literal returns a value as Cedar writes it.
func literal(v cedar.Value) string { return string(v.MarshalCedar()) }
