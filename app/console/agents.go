package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// Agents manages the registered agents. It is implemented by access.Agents and safe for concurrent
// use.
type Agents interface {
	Find(ctx context.Context, id string) (agents.Agent, error)
	List(ctx context.Context, only agents.Selection, after string, n int) ([]agents.Agent, error)
	Budget(ctx context.Context, id string) (budget.Standing, error)
	Activity(agentID string, period audit.Period, before uint64, n int) ([]agents.Entry, error)
	SetStatus(ctx context.Context, id string, status agents.Status, by string) error
	Change(ctx context.Context, id string, c agents.Change, by string, allow func(before, after agents.Agent) error) (
		agents.Agent, error)
}

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
		{pattern: "POST /agents/{agent}", scope: auth.ScopeAgents, show: changeAgent},
		{pattern: "POST /agents/{agent}/status", scope: auth.ScopeAdmin, show: setAgentStatus},
	}}
}

// The maximum number of agents in a list, and of actions on the page of an agent.
const (
	agentsPage    = 100
	shownActivity = 25
)

func showAgents(c *Console, q *query) (view, error) {
	filter, only := c.periodOf(q.URL.Query()), agents.SelectFor(q.who)
	only.Created = filter.period
	list, err := c.opts.Agents.List(q.Context(), only, q.URL.Query().Get("after"), agentsPage+1)
	if err != nil {
		return view{}, err
	}
	var shown struct {
		Filter periodFilter // by the time of the registration
		Agents []agents.Agent
		Later  string
	}
	if len(list) > agentsPage {
		list = list[:agentsPage]
		shown.Later = filter.address("/agents", url.Values{"after": {list[agentsPage-1].ID}})
	}
	shown.Filter, shown.Agents = filter, list
	return view{title: "Agents", data: shown}, nil
}

type shownAgent struct {
	agents.Agent
	Permissions string
	Budget      []string
	Limits      budget.Limits
	Activity    []agents.Entry
	Filter      periodFilter // by the time of the actions
	Newer       string       // the address of the newest actions; empty on the first page
	Older       string       // the address of the next page; empty on the last one
	MaySet      bool
	MayChange   bool
	Types       []agents.Type
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
	if shown.Permissions, err = canon.Pretty(agent.Permissions); err != nil {
		return view{}, err
	}
	var standing budget.Standing
	if standing, err = c.opts.Agents.Budget(q.Context(), agent.ID); err != nil {
		return view{}, err
	}
	shown.Budget, shown.Limits = standing.Lines(), standing.Limits
	shown.MayChange, shown.Types = agent.Status != agents.Killed && auth.MayGrant(q.who, agent.Type) == nil,
		agents.Types()
	shown.Filter = c.periodOf(q.URL.Query())
	before, _ := strconv.ParseUint(q.URL.Query().Get("before"), 10, 53) // an invalid number means the newest
	if shown.Activity, err = c.opts.Agents.Activity(agent.ID, shown.Filter.period, before,
		shownActivity+1); err != nil {
		return view{}, err
	}
	if len(shown.Activity) > shownActivity {
		shown.Activity = shown.Activity[:shownActivity]
		last := strconv.FormatUint(shown.Activity[shownActivity-1].Record, 10)
		shown.Older = shown.Filter.address("/agents/"+agent.ID, url.Values{"before": {last}})
	}
	if before > 0 {
		shown.Newer = shown.Filter.address("/agents/"+agent.ID, url.Values{})
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
	if status != agents.Active && status != agents.Suspended && status != agents.Killed {
		return view{}, &refusal{http.StatusUnprocessableEntity, "An agent is active, suspended or killed.", ""}
	}
	if err := c.opts.Agents.SetStatus(q.Context(), agent.ID, status, q.who.Name()); err != nil {
		return view{}, refusedChange(err)
	}
	q.notify("The agent is %s.", status)
	return view{redirect: "/agents/" + url.PathEscape(agent.ID)}, nil
}

// refusedChange returns the page for an error of a change of an agent.
func refusedChange(err error) error {
	var invalid *agents.InvalidError
	var more *auth.GrantError
	switch {
	case errors.As(err, &invalid):
		return &refusal{http.StatusUnprocessableEntity, "The agent was not changed: " + err.Error() + ".", ""}
	case errors.As(err, &more):
		return &refusal{http.StatusForbidden, "The agent was not changed: " + err.Error() + ".", ""}
	case errors.Is(err, agents.ErrKilled):
		return &refusal{http.StatusConflict, "The agent was killed, and does not come back.", "Register a new one."}
	}
	return err
}

// changeAgent does what airlock agents update does. A field that was left as the page showed it
// changes nothing.
func changeAgent(c *Console, q *query) (view, error) {
	agent, err := agentOf(c, q)
	if err != nil {
		return view{}, err
	}
	standing, err := c.opts.Agents.Budget(q.Context(), agent.ID)
	if err != nil {
		return view{}, err
	}
	if q.PostForm.Get("shown") != digestOf(agent, standing.Limits) {
		return view{}, &refusal{http.StatusConflict, "The agent was changed after this page was shown.",
			"Look at it again."}
	}
	change, err := changeOf(q, agent)
	if err != nil {
		return view{}, refusedChange(err)
	}
	if _, err := c.opts.Agents.Change(q.Context(), agent.ID, change, q.who.Name(), auth.MayChange(q.who)); err != nil {
		return view{}, refusedChange(err)
	}
	q.notify("The agent was changed.")
	return view{redirect: "/agents/" + url.PathEscape(agent.ID)}, nil
}

// changeOf returns the change in the form of an agent's page.
func changeOf(q *query, agent agents.Agent) (c agents.Change, err error) {
	if name := q.PostForm.Get("name"); name != agent.Name {
		c.Name = &name
	}
	if to := agents.Type(q.PostForm.Get("type")); to != agent.Type {
		c.Type = &to
	}
	c.Permissions = &agents.Permissions{
		AllowedEngines: changedList(q, "allowed_engines", agent.Permissions.AllowedEngines),
		AllowedTools:   changedList(q, "allowed_tools", agent.Permissions.AllowedTools),
		BlockedTools:   changedList(q, "blocked_tools", agent.Permissions.BlockedTools),
	}
	c.Budget = &budget.Limits{}
	if text := q.PostForm.Get("daily_usd"); text != "" {
		amount, err := budget.ParseAmount(text)
		if err != nil {
			return c, &agents.InvalidError{Text: "daily_usd: " + err.Error()}
		}
		c.Budget.DayCost = &amount
	}
	if text := q.PostForm.Get("hourly_requests"); text != "" {
		requests, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return c, &agents.InvalidError{Text: "hourly_requests is not a whole number"}
		}
		c.Budget.HourRequests = &requests
	}
	if text := q.PostForm.Get("expires"); text != expiryOf(agent) {
		c.Expires = &text
	}
	return c, nil
}

// changedList returns the lines of a field, or nil if they are the ones of the agent.
func changedList(q *query, field string, was []string) []string {
	is := []string{}
	for line := range strings.Lines(q.PostForm.Get(field)) {
		if line = strings.TrimSpace(line); line != "" {
			is = append(is, line)
		}
	}
	if slices.Equal(is, was) {
		return nil
	}
	return is
}

// expiryOf returns the expiry of an agent as its form shows it.
func expiryOf(agent agents.Agent) string {
	if agent.Expires.IsZero() {
		return agents.Never
	}
	return agent.Expires.Format(time.RFC3339)
}

// digestOf identifies the settings of an agent that a form has shown.
func digestOf(agent agents.Agent, limits budget.Limits) string {
	raw, err := json.Marshal([]any{agent.Name, agent.Type, agent.Permissions, agent.Expires, limits})
	if err != nil {
		panic(err) // strings, numbers and times can be marshalled
	}
	return canon.Digest(raw)
}

// Shown is digestOf for the template.
func (a shownAgent) Shown() string { return digestOf(a.Agent, a.Limits) }

// Expiry is expiryOf for the template.
func (a shownAgent) Expiry() string { return expiryOf(a.Agent) }

// Lists returns the permissions with their lists, for the template.
func (a shownAgent) Lists() agents.Permissions { return a.Agent.Permissions }
