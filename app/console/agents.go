package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// agentsSection lists the caller's agents, or all agents if the caller has the scope admin.
func agentsSection() section {
	return section{name: "Agents", path: "/agents", scope: auth.ScopeAgents, template: "agents", pages: []page{
		{pattern: "GET /agents", scope: auth.ScopeAgents, show: showAgents},
	}}
}

// agentSection shows one agent.
func agentSection() section {
	return section{path: "/agents", template: "agent", pages: []page{
		{pattern: "GET /agents/{agent}", scope: auth.ScopeAgents, show: showAgent},
		{pattern: "POST /agents/{agent}/status", scope: auth.ScopeAdmin, show: setAgentStatus},
	}}
}

// The maximum number of agents in a list, and of actions on the page of an agent.
const (
	agentsPage    = 100
	shownActivity = 25
)

func showAgents(c *Console, q *query) (view, error) {
	list, err := c.opts.Agents.List(q.Context(), agents.SelectFor(q.who), q.URL.Query().Get("after"), agentsPage+1)
	if err != nil {
		return view{}, err
	}
	var shown struct {
		Agents []agents.Agent
		Later  string
	}
	if len(list) > agentsPage {
		list = list[:agentsPage]
		shown.Later = "/agents?" + url.Values{"after": {list[agentsPage-1].ID}}.Encode()
	}
	shown.Agents = list
	return view{title: "Agents", data: shown}, nil
}

type shownAgent struct {
	agents.Agent
	Permissions string
	Budget      []string
	Activity    []agents.Entry
	MaySet      bool
}

// agentOf returns the agent in the path of a request. If the caller may not see it, it is not
// found.
func agentOf(c *Console, q *query) (agents.Agent, error) {
	agent, err := c.opts.Agents.Find(q.Context(), q.PathValue("agent"))
	if errors.Is(err, agents.ErrUnknown) || err == nil && !q.who.May(caller.People, caller.Change, agent.Object()) {
		return agents.Agent{}, notFound("agent")
	}
	return agent, err
}

func showAgent(c *Console, q *query) (view, error) {
	agent, err := agentOf(c, q)
	if err != nil {
		return view{}, err
	}
	shown := shownAgent{Agent: agent, MaySet: q.may(auth.ScopeAdmin) && agent.Status != agents.Killed}
	permissions, err := json.MarshalIndent(agent.Permissions, "", "  ")
	if err != nil {
		return view{}, err
	}
	shown.Permissions = string(permissions)
	var standing budget.Standing
	if standing, err = c.opts.Agents.Budget(q.Context(), agent.ID); err != nil {
		return view{}, err
	}
	shown.Budget = standing.Lines()
	if shown.Activity, err = c.opts.Agents.Activity(agent.ID, shownActivity); err != nil {
		return view{}, err
	}
	return view{title: agent.Name, data: shown}, nil
}

// setAgentStatus does what airlock agents suspend, resume and kill do.
func setAgentStatus(c *Console, q *query) (view, error) {
	agent, err := agentOf(c, q)
	if err != nil {
		return view{}, err
	}
	status := agents.Status(q.PostForm.Get("status"))
	switch {
	case status != agents.Active && status != agents.Suspended && status != agents.Killed:
		return view{}, &refusal{http.StatusUnprocessableEntity, "An agent is active, suspended or killed.", ""}
	case agent.Status == agents.Killed && status != agents.Killed:
		return view{}, &refusal{http.StatusConflict, "The agent was killed, and does not come back.", "Register a new one."}
	}
	if err := c.opts.Agents.SetStatus(q.Context(), agent.ID, status, q.who.Name()); err != nil {
		return view{}, err
	}
	q.tell("The agent is %s.", status)
	return view{redirect: "/agents/" + url.PathEscape(agent.ID)}, nil
}
