package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// Remotes manages the agents that are registered elsewhere and pinned here. It is implemented by
// iatp.Service, which documents the errors, and safe for concurrent use.
type Remotes interface {
	Remotes(ctx context.Context, after string, n int) ([]iatp.Remote, error)
	ChangeRemote(ctx context.Context, agent string, c iatp.RemoteChange, by string) (iatp.Remote, error)
	Unpin(ctx context.Context, agent, by string) error
}

// remotesSection lists and changes the remote agents.
func remotesSection() section {
	return section{name: "Remote agents", path: "/remote-agents", scope: auth.ScopeAgents, template: "remotes",
		pages: []page{
			{pattern: "GET /remote-agents", scope: auth.ScopeAgents, show: showRemotes},
			{pattern: "POST /remote-agents", scope: auth.ScopeAdmin, show: changeRemote},
		}}
}

// mayRemotes returns an error if the caller may not do an act with remote agents, which belong to the
// whole installation.
func mayRemotes(q *query, act caller.Act) error {
	if q.who.May(caller.People, act, caller.Object{Kind: caller.Remote}) {
		return nil
	}
	return errOneProfile
}

func showRemotes(c *Console, q *query) (view, error) {
	if err := mayRemotes(q, caller.See); err != nil {
		return view{}, err
	}
	var shown struct {
		Agents []iatp.Remote
		Levels []iatp.Level
		MaySet bool
		Later  string
	}
	var err error
	if shown.Agents, err = c.opts.Remotes.Remotes(q.Context(), q.URL.Query().Get("after"), agentsPage+1); err != nil {
		return view{}, err
	}
	if len(shown.Agents) > agentsPage {
		shown.Agents = shown.Agents[:agentsPage]
		shown.Later = "/remote-agents?" + url.Values{"after": {shown.Agents[agentsPage-1].Agent}}.Encode()
	}
	shown.Levels, shown.MaySet = iatp.Levels, mayRemotes(q, caller.Change) == nil
	return view{title: "Remote agents", data: shown}, nil
}

// changeRemote does what airlock agents remote AGENT does with a flag.
func changeRemote(c *Console, q *query) (view, error) {
	if err := mayRemotes(q, caller.Change); err != nil {
		return view{}, err
	}
	agent, by := q.PostForm.Get("agent"), q.who.Name()
	var change iatp.RemoteChange
	var err error
	switch do := q.PostForm.Get("do"); do {
	case "level":
		level := iatp.Level(q.PostForm.Get("level"))
		change.Level = &level
	case "suspend", "resume":
		suspended := do == "suspend"
		change.Suspended = &suspended
	case "unpin":
		err = c.opts.Remotes.Unpin(q.Context(), agent, by)
	default:
		return view{}, &refusal{http.StatusUnprocessableEntity, "The form has no change of an agent.", ""}
	}
	if change != (iatp.RemoteChange{}) {
		_, err = c.opts.Remotes.ChangeRemote(q.Context(), agent, change, by)
	}
	var no *iatp.Refusal
	switch {
	case errors.Is(err, iatp.ErrNotPinned):
		return view{}, notFound("remote agent")
	case errors.As(err, &no):
		return view{}, &refusal{http.StatusUnprocessableEntity, "The agent was not changed: " + no.Text + ".", ""}
	case err != nil:
		return view{}, err
	}
	q.notify("The remote agent was changed.")
	return view{redirect: "/remote-agents"}, nil
}
