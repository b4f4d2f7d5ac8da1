// Package agents has the verbs about agents, their budgets and trust, and the tokens of callers.
package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Verbs are the verbs of airlock agents.
type Verbs struct {
	List    agentsListVerb    `cmd:"" help:"List the registered agents."`
	Show    agentsShowVerb    `cmd:"" help:"Show one agent: its permissions, its budget and its newest actions."`
	Create  agentsCreateVerb  `cmd:"" help:"Register an agent and print its token, this once."`
	Update  agentsUpdateVerb  `cmd:"" help:"Change an agent's name, type, permissions (none for an empty list), budget or expiry."`
	Rotate  agentsRotateVerb  `cmd:"" help:"Give an agent a new token; the old one is invalid at once."`
	Suspend agentsSuspendVerb `cmd:"" help:"Deny an agent everything until it is resumed."`
	Resume  agentsResumeVerb  `cmd:"" help:"Let a suspended agent act again."`
	Kill    agentsKillVerb    `cmd:"" help:"End an agent for good."`

	agentsTrustVerbs `embed:""`
}

// agentsFlags are the flags with which the agents are found.
type agentsFlags struct{ verb.ConfigFlag }

// with opens the agents and calls do.
func (f agentsFlags) with(ctx context.Context, s *verb.Streams, do func(*access.Agents) error) error {
	c, err := f.LoadState(s.Err)
	if err != nil {
		return err
	}
	return access.With(ctx, c, verb.Version, func(a *access.Agents) error { return advised(do(a)) })
}

// guarded is verb.GuardedIn for the configuration of the flags.
func (f agentsFlags) guarded(what string) error {
	c, err := f.LoadPlaces()
	if err != nil {
		return err
	}
	return verb.GuardedIn(c, what)
}

// advised adds the hint to an error about an agent.
func advised(err error) error {
	if errors.Is(err, agents.ErrUnknown) {
		return verb.WithHint(err, "airlock agents list", verb.ExitUsage)
	}
	return err
}

type agentsListVerb struct {
	agentsFlags
	verb.PeriodFlags `set:"dated=was registered"`
	Owner            string `placeholder:"NAME" help:"Only those that this principal registered."`
	JSON             bool   `name:"json" help:"Print JSON."`
}

// listPage is the number of agents that are read in one query.
const listPage = 1000

// Run lists agents in order of their IDs.
func (v *agentsListVerb) Run(ctx context.Context, s *verb.Streams) error {
	period, err := v.Period()
	if err != nil {
		return err
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		all := []agents.Agent{}
		for after := ""; ; after = all[len(all)-1].ID {
			page, err := a.List(ctx, agents.Selection{Owner: v.Owner, Created: period}, after, listPage)
			if err != nil {
				return err
			}
			all = append(all, page...)
			if len(page) < listPage {
				break
			}
		}
		if v.JSON {
			return verb.PrintLine(s.Out, map[string]any{"agents": all})
		}
		if len(all) == 0 && !period.IsZero() {
			_, err := fmt.Fprintln(s.Err, "airlock: no agent was registered in this time")
			return err
		}
		if len(all) == 0 {
			_, err := fmt.Fprintln(
				s.Err, "airlock: no agent is registered\nhint: airlock agents create NAME --type supervised")
			return err
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			for _, agent := range all {
				t.Add(verb.Text(agent.ID, verb.Plain), verb.Text(string(agent.Type), verb.Plain),
					verb.Text(string(agent.Status), statusStyle(agent.Status)),
					verb.Text(verb.OneLine(agent.Name, 40), verb.Plain),
					verb.Text(verb.OneLine(agent.PrincipalID, 40), verb.Dim))
			}
			return t.Write(w)
		})
	})
}

func statusStyle(status agents.Status) verb.Style {
	switch status {
	case agents.Active:
		return verb.Green
	case agents.Suspended:
		return verb.Yellow
	}
	return verb.Red
}

type agentsShowVerb struct {
	agentsFlags
	verb.PeriodFlags `set:"dated=it did"`
	Agent            string `arg:"" help:"The ID of an agent."`
	Lines            int    `short:"n" default:"10" help:"How many of its newest actions; with --since or --until, 1000."`
	JSON             bool   `name:"json" help:"Print JSON."`
}

// shownAgent is one agent in the output of --json.
type shownAgent struct {
	agents.Agent
	Budget   budget.Standing `json:"budget"`
	Activity []agents.Entry  `json:"activity"` // newest first
}

// Run shows one agent.
func (v *agentsShowVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Lines < 0 || v.Lines > agents.MaxActivity {
		return verb.Usage(fmt.Sprintf("-n must be a number of actions from 0 to %d", agents.MaxActivity),
			"airlock agents show AGENT -n 10")
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	if !period.IsZero() {
		v.Lines = agents.MaxActivity
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		var shown shownAgent
		var err error
		if shown.Agent, err = a.Find(ctx, v.Agent); err != nil {
			return err
		}
		if shown.Budget, err = a.Budget(ctx, v.Agent); err != nil {
			return err
		}
		if shown.Activity, err = a.Activity(v.Agent, period, 0, v.Lines); err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, shown)
		}
		return verb.Paged(s, shown.write)
	})
}

func (a shownAgent) write(w io.Writer) error {
	permissions, err := json.Marshal(a.Permissions)
	if err != nil {
		return err
	}
	var t verb.Table
	t.Add(verb.Text("agent", verb.Dim), verb.Text(a.ID+"  "+verb.OneLine(a.Name, 80), verb.Plain))
	t.Add(verb.Text("type", verb.Dim), verb.Text(fmt.Sprintf("%s (trust %d), %s", a.Type, a.Trust, a.Status),
		verb.Plain))
	t.Add(verb.Text("acts for", verb.Dim), verb.Text(verb.OneLine(a.PrincipalID, 80), verb.Plain))
	if !a.Expires.IsZero() {
		t.Add(verb.Text("expires", verb.Dim), verb.Text(a.Expires.Local().Format("2006-01-02 15:04"), verb.Plain))
	}
	t.Add(verb.Text("permissions", verb.Dim), verb.Text(string(permissions), verb.Plain))
	for _, line := range a.Budget.Lines() {
		t.Add(verb.Text("budget", verb.Dim), verb.Text(line, verb.Plain))
	}
	for _, entry := range a.Activity {
		what := entry.ActionType
		if entry.ServerID != "" {
			what = entry.ServerID + "/" + what
		}
		t.Add(verb.Text(verb.ShortBegan(entry.Timestamp), verb.Dim),
			verb.Text(verb.OneLine(fmt.Sprintf("%s  %s  %s %s%s", entry.Decision, what, entry.RiskLevel,
				entry.ErrorCode, entry.Reason), 160), verb.Plain))
	}
	return t.Write(w)
}

// agentSettings are the flags for an agent's permissions and budget.
type agentSettings struct {
	AllowedEngine []string `placeholder:"ENGINE" sep:"," help:"Engines that its actions may need; by default all."`
	AllowedTool   []string `placeholder:"TOOL" sep:"," help:"Tools beside the safe ones that it may use: SERVER/TOOL, SERVER/*, or a name on any server."`
	BlockedTool   []string `placeholder:"TOOL" sep:"," help:"Tools and action types that it may not use."`
	DailyUSD      string   `name:"daily-usd" placeholder:"AMOUNT" help:"What it may spend a day; 100 by default."`
	RequestUSD    string   `name:"request-usd" placeholder:"AMOUNT" help:"What one request may cost."`
	HourlyCalls   *int64   `name:"hourly-requests" placeholder:"N" help:"How often it may ask an hour; 1000 by default."`
	DailyCalls    *int64   `name:"daily-requests" placeholder:"N" help:"How often it may ask a day."`
}

func (v agentSettings) permissions() agents.Permissions {
	return agents.Permissions{AllowedEngines: v.AllowedEngine, AllowedTools: v.AllowedTool, BlockedTools: v.BlockedTool}
}

func (v agentSettings) budget() (budget.Limits, error) {
	limits := budget.Limits{HourRequests: v.HourlyCalls, DayRequests: v.DailyCalls}
	for _, one := range []struct {
		flag, text string
		to         **budget.Amount
	}{{"--daily-usd", v.DailyUSD, &limits.DayCost}, {"--request-usd", v.RequestUSD, &limits.RequestCost}} {
		if one.text == "" {
			continue
		}
		amount, err := budget.ParseAmount(one.text)
		if err != nil {
			return limits, fmt.Errorf("%s: %w", one.flag, err)
		}
		*one.to = &amount
	}
	return limits, nil
}

type agentsCreateVerb struct {
	agentsFlags
	Name string `arg:"" help:"What people call it."`
	Type string `default:"supervised" enum:"untrusted,supervised,autonomous,trusted" help:"How far it is trusted: ${enum}."`
	For  string `placeholder:"NAME" help:"The principal that it acts for; by default you."`
	agentSettings
	JSON bool `name:"json" help:"Print JSON."`
}

// Run registers an agent.
func (v *agentsCreateVerb) Run(ctx context.Context, s *verb.Streams) error {
	registration, err := v.registration()
	if err != nil {
		return verb.Usage(err.Error(), "airlock agents create --help")
	}
	if v.widens() {
		if err := v.guarded(
			"registering an agent that is trusted further than supervised, may use more tools or spend " +
				"more"); err != nil {
			return err
		}
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		agent, token, err := a.Register(ctx, registration, setup.Principal())
		if err != nil {
			return err
		}
		return printToken(s, v.JSON, agent.ID, token)
	})
}

// widens reports whether the agent gets more rights than an agent that is registered without flags.
func (v *agentsCreateVerb) widens() bool {
	trusted := v.Type == string(agents.Autonomous) || v.Type == string(agents.Trusted)
	return trusted || len(v.AllowedTool) > 0 || v.DailyUSD != "" || v.HourlyCalls != nil || v.For != "" &&
		v.For != setup.Principal()
}

// registration returns the registration in the flags. It makes the same checks as the API.
func (v *agentsCreateVerb) registration() (agents.Registration, error) {
	r := agents.Registration{Name: v.Name, Type: agents.Type(v.Type), PrincipalID: cmp.Or(v.For, setup.Principal()),
		Permissions: v.permissions()}
	var err error
	if r.Budget, err = v.budget(); err != nil {
		return r, err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	return agents.ParseRegistration(raw)
}

// printToken prints the agent's ID and its token on stdout, so that no log of stderr has the token.
func printToken(s *verb.Streams, asJSON bool, id string, token secret.Value) error {
	if asJSON {
		return verb.PrintLine(s.Out, map[string]string{"agent_id": id, "agent_token": token.Reveal()})
	}
	fmt.Fprintln(s.Err, "airlock: keep the token now, it is not shown again")
	_, err := fmt.Fprintf(s.Out, "%s\n%s\n", id, token.Reveal())
	return err
}

type agentsRotateVerb struct {
	agentsFlags
	Agent string `arg:"" help:"The ID of an agent."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run prints the agent's new token.
func (v *agentsRotateVerb) Run(ctx context.Context, s *verb.Streams) error {
	if err := v.guarded("giving an agent a new token"); err != nil {
		return err
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		token, err := a.Rotate(ctx, v.Agent, setup.Principal(), nil)
		if err != nil {
			return err
		}
		return printToken(s, v.JSON, v.Agent, token)
	})
}

// agentStatus are the arguments of the verbs that change the status of an agent.
type agentStatus struct {
	agentsFlags
	Agent string `arg:"" help:"The ID of an agent."`
}

func (v agentStatus) set(ctx context.Context, s *verb.Streams, status agents.Status) error {
	if status == agents.Active {
		if err := v.guarded("resuming an agent"); err != nil {
			return err
		}
	}
	return v.with(ctx, s, func(a *access.Agents) error { return a.SetStatus(ctx, v.Agent, status, setup.Principal()) })
}

type agentsSuspendVerb struct{ agentStatus }

// Run suspends an agent.
func (v *agentsSuspendVerb) Run(ctx context.Context, s *verb.Streams) error {
	return v.set(ctx, s, agents.Suspended)
}

type agentsResumeVerb struct{ agentStatus }

// Run lets a suspended agent act again.
func (v *agentsResumeVerb) Run(ctx context.Context, s *verb.Streams) error {
	return v.set(ctx, s, agents.Active)
}

type agentsKillVerb struct{ agentStatus }

// Run kills an agent. It cannot be resumed.
func (v *agentsKillVerb) Run(ctx context.Context, s *verb.Streams) error {
	return v.set(ctx, s, agents.Killed)
}
