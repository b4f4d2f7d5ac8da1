package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/rules"
)

// proposalSection proposes a rule for calls like the one of a question. It changes nothing.
func proposalSection() section {
	return section{path: "/questions", scope: auth.ScopeApprove, template: "proposal", pages: []page{
		{pattern: "GET /questions/{question}/rule", scope: auth.ScopeApprove, show: proposeRule},
	}}
}

type shownProposal struct {
	ID, Tool  string
	Arguments []freeArgument
	Proposal  admission.Proposal
	Since     time.Time
	Problem   string // why there is no rule; empty if there is one
}

// freeArgument is an argument of the call, which may have any value or not.
type freeArgument struct {
	Name string
	Free bool
}

func proposeRule(c *Console, q *query) (view, error) {
	posted, gone, err := c.findQuestion(q)
	switch {
	case err != nil:
		return view{}, err
	case gone != "" || posted.Elicitation != nil:
		return view{}, notFound("question about a call")
	case !c.verifying.TryLock():
		return view{}, &refusal{http.StatusServiceUnavailable, "The log is being read already.",
			"Try again when that is done."}
	}
	defer c.verifying.Unlock()
	shown := shownProposal{ID: posted.ID, Tool: posted.ServerID + "/" + posted.ToolName}
	free := q.URL.Query()["any"]
	shown.Proposal, shown.Since, err = c.opts.System.Propose(q.who, posted.Question, free)
	if err != nil {
		shown.Problem = sentence(err.Error())
	} else {
		free = shown.Proposal.Free
	}
	for _, name := range rules.ArgumentNames(posted.Question) {
		shown.Arguments = append(shown.Arguments, freeArgument{name, slices.Contains(free, name)})
	}
	return view{title: "A rule for calls like this", data: shown}, nil
}
