package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/secret"
)

type agentsVerbs struct {
	List    agentsListVerb    `cmd:"" help:"List the registered agents."`
	Show    agentsShowVerb    `cmd:"" help:"Show one agent: its permissions, its budget and its newest actions."`
	Create  agentsCreateVerb  `cmd:"" help:"Register an agent and print its token, this once."`
	Rotate  agentsRotateVerb  `cmd:"" help:"Give an agent a new token; the old one is invalid at once."`
	Suspend agentsSuspendVerb `cmd:"" help:"Deny an agent everything until it is resumed."`
	Resume  agentsResumeVerb  `cmd:"" help:"Let a suspended agent act again."`
	Kill    agentsKillVerb    `cmd:"" help:"End an agent for good."`

	agentsTrustVerbs `embed:""`
}

// agentsFlags are the flags with which the agents are found.
type agentsFlags struct{ configFlag }

// with opens the agents and calls do.
func (f agentsFlags) with(ctx context.Context, do func(*system.Agents) error) error {
	c, err := f.loadPlaces()
	if err != nil {
		return err
	}
	a, err := system.OpenAgents(ctx, c, system.Options{Version: version})
	if err != nil {
		return err
	}
	return errors.Join(advised(do(a)), a.Close())
}

// advised adds the hint to an error about an agent.
func advised(err error) error {
	if errors.Is(err, agents.ErrUnknown) {
		return &hinted{err, "airlock agents list", ExitUsage}
	}
	return err
}

type agentsListVerb struct {
	agentsFlags
	Owner string `placeholder:"NAME" help:"Only those that this principal registered."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// listPage is the number of agents that are read in one query.
const listPage = 1000

// Run lists agents in order of their IDs.
func (v *agentsListVerb) Run(ctx context.Context, s *streams) error {
	return v.with(ctx, func(a *system.Agents) error {
		all := []agents.Agent{}
		for after := ""; ; after = all[len(all)-1].ID {
			page, err := a.List(ctx, agents.Selection{Owner: v.Owner}, after, listPage)
			if err != nil {
				return err
			}
			all = append(all, page...)
			if len(page) < listPage {
				break
			}
		}
		if v.JSON {
			return printLine(s.out, map[string]any{"agents": all})
		}
		if len(all) == 0 {
			_, err := fmt.Fprintln(s.err, "airlock: no agent is registered\nhint: airlock agents create NAME --type supervised")
			return err
		}
		return paged(s, func(w io.Writer) error {
			var t table
			for _, agent := range all {
				t.add(cell{agent.ID, plain}, cell{string(agent.Type), plain}, cell{string(agent.Status), statusStyle(agent.Status)},
					cell{oneLine(agent.Name, 40), plain}, cell{oneLine(agent.PrincipalID, 40), dim})
			}
			return t.write(w)
		})
	})
}

func statusStyle(status agents.Status) style {
	switch status {
	case agents.Active:
		return green
	case agents.Suspended:
		return yellow
	}
	return red
}

type agentsShowVerb struct {
	agentsFlags
	Agent string `arg:"" help:"The ID of an agent."`
	Lines int    `short:"n" default:"10" help:"How many of its newest actions."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// shownAgent is one agent in the output of --json.
type shownAgent struct {
	agents.Agent
	Budget   budget.Standing `json:"budget"`
	Activity []agents.Entry  `json:"activity"` // newest first
}

// Run shows one agent.
func (v *agentsShowVerb) Run(ctx context.Context, s *streams) error {
	if v.Lines < 0 || v.Lines > agents.MaxActivity {
		return &usageError{fmt.Sprintf("-n takes a number of actions, from 0 to %d", agents.MaxActivity), "airlock agents show AGENT -n 10"}
	}
	return v.with(ctx, func(a *system.Agents) error {
		var shown shownAgent
		var err error
		if shown.Agent, err = a.Find(ctx, v.Agent); err != nil {
			return err
		}
		if shown.Budget, err = a.Budget(ctx, v.Agent); err != nil {
			return err
		}
		if shown.Activity, err = a.Activity(v.Agent, v.Lines); err != nil {
			return err
		}
		if v.JSON {
			return printLine(s.out, shown)
		}
		return paged(s, shown.write)
	})
}

func (a shownAgent) write(w io.Writer) error {
	permissions, err := json.Marshal(a.Permissions)
	if err != nil {
		return err
	}
	var t table
	t.add(cell{"agent", dim}, cell{a.ID + "  " + oneLine(a.Name, 80), plain})
	t.add(cell{"type", dim}, cell{fmt.Sprintf("%s (trust %d), %s", a.Type, a.Trust, a.Status), plain})
	t.add(cell{"acts for", dim}, cell{oneLine(a.PrincipalID, 80), plain})
	t.add(cell{"permissions", dim}, cell{string(permissions), plain})
	for _, line := range a.Budget.Lines() {
		t.add(cell{"budget", dim}, cell{line, plain})
	}
	for _, entry := range a.Activity {
		what := entry.ActionType
		if entry.ServerID != "" {
			what = entry.ServerID + "/" + what
		}
		t.add(cell{shortBegan(entry.Timestamp), dim}, cell{oneLine(fmt.Sprintf("%s  %s  %s %s", entry.Decision, what, entry.RiskLevel, entry.ErrorCode), 120), plain})
	}
	return t.write(w)
}

type agentsCreateVerb struct {
	agentsFlags
	Name          string   `arg:"" help:"What people call it."`
	Type          string   `default:"supervised" enum:"untrusted,supervised,autonomous,trusted" help:"How far it is trusted: ${enum}."`
	For           string   `placeholder:"NAME" help:"The principal that it acts for; by default you."`
	AllowedEngine []string `placeholder:"ENGINE" sep:"," help:"Engines that its actions may need; by default all."`
	AllowedTool   []string `placeholder:"TOOL" sep:"," help:"Tools beside the safe ones that it may use: SERVER/TOOL, SERVER/*, or a name on any server."`
	BlockedTool   []string `placeholder:"TOOL" sep:"," help:"Tools and action types that it may not use."`
	DailyUSD      string   `name:"daily-usd" placeholder:"AMOUNT" help:"What it may spend a day; 100 by default."`
	HourlyCalls   *int64   `name:"hourly-requests" placeholder:"N" help:"How often it may ask an hour; 1000 by default."`
	JSON          bool     `name:"json" help:"Print JSON."`
}

// Run registers an agent.
func (v *agentsCreateVerb) Run(ctx context.Context, s *streams) error {
	registration, err := v.registration()
	if err != nil {
		return &usageError{err.Error(), "airlock agents create --help"}
	}
	if v.widens() {
		if err := guarded("registering an agent that is trusted further than supervised, may use more tools or spend more"); err != nil {
			return err
		}
	}
	return v.with(ctx, func(a *system.Agents) error {
		agent, token, err := a.Register(ctx, registration, system.Principal())
		if err != nil {
			return err
		}
		return printToken(s, v.JSON, agent.ID, token)
	})
}

// widens reports whether the agent gets more rights than an agent that is registered without flags.
func (v *agentsCreateVerb) widens() bool {
	trusted := v.Type == string(agents.Autonomous) || v.Type == string(agents.Trusted)
	return trusted || len(v.AllowedTool) > 0 || v.DailyUSD != "" || v.HourlyCalls != nil || v.For != "" && v.For != system.Principal()
}

// registration returns the registration in the flags. It makes the same checks as the API.
func (v *agentsCreateVerb) registration() (agents.Registration, error) {
	r := agents.Registration{
		Name: v.Name, Type: agents.Type(v.Type), PrincipalID: v.For,
		Permissions: agents.Permissions{AllowedEngines: v.AllowedEngine, AllowedTools: v.AllowedTool, BlockedTools: v.BlockedTool},
		Budget:      budget.Limits{HourRequests: v.HourlyCalls},
	}
	if r.PrincipalID == "" {
		r.PrincipalID = system.Principal()
	}
	if v.DailyUSD != "" {
		amount, err := budget.ParseAmount(v.DailyUSD)
		if err != nil {
			return r, fmt.Errorf("--daily-usd: %w", err)
		}
		r.Budget.DayCost = &amount
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	return agents.ParseRegistration(raw)
}

// printToken prints the agent's ID and its token on stdout, so that no log of stderr has the token.
func printToken(s *streams, asJSON bool, id string, token secret.Value) error {
	if asJSON {
		return printLine(s.out, map[string]string{"agent_id": id, "agent_token": token.Reveal()})
	}
	fmt.Fprintln(s.err, "airlock: keep the token now, it is not shown again")
	_, err := fmt.Fprintf(s.out, "%s\n%s\n", id, token.Reveal())
	return err
}

type agentsRotateVerb struct {
	agentsFlags
	Agent string `arg:"" help:"The ID of an agent."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run prints the agent's new token.
func (v *agentsRotateVerb) Run(ctx context.Context, s *streams) error {
	if err := guarded("giving an agent a new token"); err != nil {
		return err
	}
	return v.with(ctx, func(a *system.Agents) error {
		token, err := a.Rotate(ctx, v.Agent, system.Principal(), nil)
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

func (v agentStatus) set(ctx context.Context, status agents.Status) error {
	if status == agents.Active {
		if err := guarded("resuming an agent"); err != nil {
			return err
		}
	}
	return v.with(ctx, func(a *system.Agents) error { return a.SetStatus(ctx, v.Agent, status, system.Principal()) })
}

type agentsSuspendVerb struct{ agentStatus }

// Run suspends an agent.
func (v *agentsSuspendVerb) Run(ctx context.Context) error { return v.set(ctx, agents.Suspended) }

type agentsResumeVerb struct{ agentStatus }

// Run lets a suspended agent act again.
func (v *agentsResumeVerb) Run(ctx context.Context) error { return v.set(ctx, agents.Active) }

type agentsKillVerb struct{ agentStatus }

// Run kills an agent. It cannot be resumed.
func (v *agentsKillVerb) Run(ctx context.Context) error { return v.set(ctx, agents.Killed) }

type budgetsVerb struct {
	agentsFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists all accounts with their limits and their usage.
func (v *budgetsVerb) Run(ctx context.Context, s *streams) error {
	return v.with(ctx, func(a *system.Agents) error {
		standings, err := a.Standings(ctx)
		if err != nil {
			return err
		}
		if v.JSON {
			return printLine(s.out, map[string]any{"budgets": standings})
		}
		if len(standings) == 0 {
			_, err := fmt.Fprintln(s.err, "airlock: nothing was spent yet")
			return err
		}
		return paged(s, func(w io.Writer) error {
			var t table
			for _, standing := range standings {
				t.add(cell{oneLine(standing.Account, 60), plain}, cell{strings.Join(standing.Lines(), "  "), plain})
			}
			return t.write(w)
		})
	})
}
