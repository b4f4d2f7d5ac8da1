package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// policiesSection shows the rules in force, and their decision about a call.
func policiesSection() section {
	return section{name: "Policies", path: "/policies", scope: auth.ScopeAudit, template: "policies", pages: []page{
		{pattern: "GET /policies", scope: auth.ScopeAudit, show: showPolicies},
		// This changes nothing. It is not a GET because URLs must not contain arguments.
		{pattern: "POST /policies/explain", scope: auth.ScopeAudit, show: explainCall},
	}}
}

type shownPolicies struct {
	Files                   []policies.File
	Server, Tool, Arguments string // of the call that is explained
	Verdict                 string // refused, asks or happens; empty without a question
	Explanation             string
	Problem                 string // why a decision is missing
}

func showPolicies(c *Console, q *query) (view, error) {
	rules, err := c.opts.System.RuleSet(q.who)
	asked := q.URL.Query()
	return view{title: "Policies", data: shownPolicies{Files: rules.Files, Server: asked.Get("server"),
		Tool: asked.Get("tool")}}, err
}

func explainCall(c *Console, q *query) (view, error) {
	rules, err := c.opts.System.RuleSet(q.who)
	if err != nil {
		return view{}, err
	}
	shown := shownPolicies{Files: rules.Files, Server: q.PostForm.Get("server"), Tool: q.PostForm.Get("tool"),
		Arguments: strings.TrimSpace(q.PostForm.Get("arguments"))}
	v := view{title: "Policies"}
	explained, err := rules.Explain(q.who.Name(), shown.Server, shown.Tool, shown.Arguments)
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &unknown), errors.As(err, &withheld), errors.Is(err, admission.ErrNoObject):
		shown.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
	case err != nil:
		return view{}, err
	default:
		var text strings.Builder
		if err := policies.Explain(&text, explained.Request, explained.Decision); err != nil {
			return view{}, err
		}
		shown.Explanation, shown.Verdict = text.String(), verdictOf(explained)
		if explained.Unfit != nil {
			shown.Problem = "Policies are not asked about these arguments: the call ends in ValidationError, because " +
				explained.Unfit.Error() + "."
		}
	}
	v.data = shown
	return v, nil
}

func verdictOf(e admission.Explanation) string {
	switch {
	case !e.Decision.Allow:
		return "refused"
	case len(e.Decision.Approve) > 0:
		return "asks"
	}
	return "happens"
}
