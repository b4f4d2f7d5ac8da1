package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/policies"
)

// policiesSection shows the rules in force, and their decision about a call.
func policiesSection() section {
	return section{name: "Policies", path: "/policies", scope: auth.ScopeAudit, template: "policies", pages: []page{
		{pattern: "GET /policies", scope: auth.ScopeAudit, show: showPolicies},
		// This changes nothing. It is not a GET because URLs must not contain arguments.
		{pattern: "POST /policies/explain", scope: auth.ScopeAudit, show: explainCall},
		{pattern: "POST /policies/connect", scope: auth.ScopeAudit, show: explainConnection},
	}}
}

type shownPolicies struct {
	Files                   []policies.File
	Server, Tool, Arguments string // of the call that is explained
	Verdict                 string // refused, asks or happens; empty without a question
	Explanation             string
	Problem                 string // why a decision is missing
	Host, Contained         string // of the connection that is explained: NAME:PORT, and the server, or "" for code
	Connection              string // the decision about it
	ConnectionProblem       string // why it is missing
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
	explained, err := rules.Explain(q.who, shown.Server, shown.Tool, shown.Arguments)
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &unknown), errors.As(err, &withheld), errors.Is(err, admission.ErrNoObject):
		shown.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
	case err != nil:
		return view{}, err
	default:
		var text strings.Builder
		if err := policies.Explain(&text, explained.Request, explained.Decision, explained.Cure); err != nil {
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

// explainConnection shows the decision about a connection of the caller's code or of a contained server.
func explainConnection(c *Console, q *query) (view, error) {
	rules, err := c.opts.System.RuleSet(q.who)
	if err != nil {
		return view{}, err
	}
	shown := shownPolicies{Files: rules.Files, Host: strings.TrimSpace(q.PostForm.Get("host")),
		Contained: strings.TrimSpace(q.PostForm.Get("server"))}
	v := view{title: "Policies"}
	host, err := egress.ParseHost(shown.Host)
	state, found := c.opts.System.ServerState(q.who, shown.Contained)
	switch {
	case err != nil:
		shown.ConnectionProblem, v.status = err.Error(), http.StatusUnprocessableEntity
	case shown.Contained != "" && (!found || state.Contained == nil):
		shown.ConnectionProblem, v.status = "There is no contained server of this name.", http.StatusUnprocessableEntity
	default:
		connection := policies.Connection{Principal: q.who.Name(), Host: host.Name, Port: host.Port}
		listed := slices.Contains(c.opts.System.NetworkOf(q.who), host)
		if shown.Contained != "" {
			connection.Principal, connection.Server = state.ID, true
			listed = slices.Contains(state.Contained.MayReach, host.String())
		}
		decision, err := rules.ExplainConnect(connection)
		if err != nil {
			return view{}, err
		}
		var text strings.Builder
		if err := policies.ExplainConnect(&text, connection, decision, listed); err != nil {
			return view{}, err
		}
		shown.Connection = text.String()
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
