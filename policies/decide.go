package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Request is one call to decide on.
type Request struct {
	Principal string       // the owner of the session
	Facts     caller.Facts // about the principal
	Tool      catalog.Tool
	Settings  Settings
	// Input is the call's arguments as internal/schema.Decode returns them.
	Input   map[string]any
	Session Session
	// Elicits means that the request is about a question of the server to the person
	// behind a call that is under way, and not about the call itself.
	Elicits bool
}

// Session is what happened before the call.
type Session struct {
	Calls    int      // calls of the session so far, this one not counted
	RunCalls int      // calls of the run so far, this one not counted
	Servers  []string // servers that the session has had an answer from
	// Unknown means that the servers are not known. A rule that depends on the session then fails to
	// evaluate, which denies the call.
	Unknown bool
}

// Decision is the decision of the rules on a request. The zero value denies.
type Decision struct {
	Allow bool
	// Approve lists those who must approve the call before it is made, if Allow is set. If
	// it is empty, no approval is needed. People is the number of different persons who must.
	Approve []string
	People  int
	// Rules are the deciding rules: the permits if Allow is set, or the forbids if any
	// matched.
	Rules []Rule
	// Reasons are the reasons why the call is denied, one sentence each. It is empty if the
	// call is allowed.
	Reasons []string
	// Errors name rules that could not be evaluated. A single error denies the call.
	Errors []string
	Risk   Risk
}

// Policies returns the IDs of the deciding rules.
func (d Decision) Policies() []string {
	ids := make([]string, len(d.Rules))
	for i, r := range d.Rules {
		ids[i] = r.ID
	}
	return ids
}

// Decide evaluates all rules for one request. The obligations of all matching permits are
// combined, and an error in any rule denies.
func (e *Engine) Decide(req Request) Decision {
	d := Decision{Risk: EffectiveRisk(req.Tool, req.Settings)}
	if e == nil {
		d.Reasons = []string{"no policy is loaded"}
		return d
	}
	request, entities, costly := e.translate(req, d.Risk)
	if costly {
		d.Reasons = []string{tooLarge}
		return d
	}
	d = e.authorize(e.rules, request, entities, d)
	if req.Session.Unknown && e.session && len(d.Errors) > 0 {
		d.Reasons = append(d.Reasons, "it is not known what this conversation has read: start a new one in the host")
	}
	return d.withSettings(req.Settings)
}

// authorize completes d with the decision of some of the rules on a request.
func (e *Engine) authorize(rules *cedar.PolicySet, request cedar.Request, entities cedar.EntityMap,
	d Decision) Decision {
	effect, diagnostic := cedar.Authorize(rules, entities, request)
	deciding := make([]rule, 0, len(diagnostic.Reasons))
	for _, reason := range diagnostic.Reasons {
		r := e.info[reason.PolicyID]
		deciding = append(deciding, r)
		d.Rules = append(d.Rules, r.Rule)
	}
	sortRules(d.Rules)
	for _, failed := range diagnostic.Errors {
		// The message of the evaluator names types and attributes, never values.
		d.Errors = append(d.Errors, fmt.Sprintf("%s: %s", e.info[failed.PolicyID].Rule,
			strings.ReplaceAll(failed.Message, opaqueWords, "a value that Cedar cannot represent exactly")))
	}
	if effect == cedar.Allow {
		needs, unknown := e.unite(deciding)
		d.Approve, d.People = needs.by, needs.people
		d.Errors = append(d.Errors, unknown...)
	}
	slices.Sort(d.Errors)
	d.Allow = effect == cedar.Allow && len(d.Errors) == 0
	if !d.Allow {
		d.Approve, d.People = nil, 0
		d.Reasons = reasons(d, deciding)
	}
	return d
}

// withSettings denies a call to a tool in the operator's servers.<id>.deny, regardless of
// the rules: such a tool must never run.
func (d Decision) withSettings(settings Settings) Decision {
	if !settings.Denied || !d.Allow {
		return d
	}
	d.Allow, d.Approve, d.People, d.Rules = false, nil, 0, nil
	d.Reasons = []string{"the operator denies this tool (servers.<id>.deny)"}
	return d
}

func reasons(d Decision, deciding []rule) []string {
	var out []string
	for _, r := range deciding {
		switch {
		case r.Forbid && r.reason != "":
			out = append(out, fmt.Sprintf("policy %s forbids it: %s", r.Rule, r.reason))
		case r.Forbid:
			out = append(out, fmt.Sprintf("policy %s forbids it", r.Rule))
		}
	}
	for range d.Errors {
		out = append(out, "a policy could not be evaluated, which denies the call")
	}
	if len(out) == 0 {
		out = append(out, "no policy permits it")
	}
	slices.Sort(out)
	return slices.Compact(out)
}
