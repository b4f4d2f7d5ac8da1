package agents

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/cli/verb"
)

// Budgets is airlock budgets.
type Budgets struct {
	agentsFlags
	Kind      string `enum:",agent,principal,session" default:"" placeholder:"KIND" help:"Only accounts of this kind: agent, principal or session."`
	Agent     string `placeholder:"ID" help:"Only this agent and its sessions."`
	Principal string `placeholder:"NAME" help:"Only this principal and the agents that act for it."`
	JSON      bool   `name:"json" help:"Print JSON."`
}

// Run lists accounts with their limits and their usage.
func (v *Budgets) Run(ctx context.Context, s *verb.Streams) error {
	only := agents.Accounts{Kind: v.Kind, Agent: v.Agent, Principal: v.Principal}
	if v.Kind != "" && v.Agent != "" || v.Kind != "" && v.Principal != "" || v.Agent != "" && v.Principal != "" {
		return verb.Usage("only one of --kind, --agent and --principal can be given",
			"airlock budgets --principal NAME")
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		all := []agents.Standing{}
		for after := ""; ; after = all[len(all)-1].Account {
			page, err := a.Standings(ctx, only, after, listPage)
			if err != nil {
				return err
			}
			all = append(all, page...)
			if len(page) < listPage {
				break
			}
		}
		if v.JSON {
			return verb.PrintLine(s.Out, map[string]any{"budgets": all})
		}
		if len(all) == 0 {
			_, err := fmt.Fprintln(s.Err, "airlock: no account is in the ledger")
			return err
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			for _, standing := range all {
				t.Add(verb.Text(verb.OneLine(standing.Account, 60), verb.Plain),
					verb.Text(verb.OneLine(standing.Name, 40), verb.Plain),
					verb.Text(strings.Join(standing.Lines(), "  "), verb.Plain))
			}
			return t.Write(w)
		})
	})
}

// CostsVerb prints what agents and their principals cost.
type CostsVerb struct {
	agentsFlags
	By               string `enum:"principal,agent" default:"principal" help:"Sum up by ${enum}."`
	Principal        string `placeholder:"NAME" help:"Only this principal, or the agents that act for it."`
	Days             int    `default:"30" help:"The number of days, today included, if there is no --since."`
	verb.PeriodFlags `set:"dated=was spent"`
	JSON             bool `name:"json" help:"Print JSON."`
}

// days returns the first and the last day of the flags. The ledger's days are those of UTC.
func (v *CostsVerb) days(now time.Time) (first, last time.Time, _ error) {
	period, err := v.PeriodAt(now)
	if err != nil {
		return first, last, err
	}
	if last = now; !period.Until.IsZero() && period.Until.Before(now) {
		last = period.Until.Add(-1)
	}
	if first = last.AddDate(0, 0, 1-v.Days); !period.Since.IsZero() {
		first = period.Since
	}
	if kept := now.AddDate(0, 0, -maxCostDays); first.Before(kept) {
		first = kept
	}
	return first, last, nil
}

// maxCostDays is the number of days that the ledger keeps.
const maxCostDays = 400

// Run prints what was spent on each day.
func (v *CostsVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Days < 1 || v.Days > maxCostDays {
		return verb.Usage(fmt.Sprintf("--days must be a number from 1 to %d", maxCostDays), "airlock costs --days 7")
	}
	first, last, err := v.days(time.Now().UTC())
	if err != nil {
		return err
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		costs, err := a.Costs(ctx, agents.Accounts{Kind: v.By, Principal: v.Principal}, first, last)
		if err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, map[string]any{"costs": costs})
		}
		if len(costs) == 0 {
			_, err := fmt.Fprintln(s.Err, "airlock: nothing was spent in this time")
			return err
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			for _, c := range costs {
				t.Add(verb.Text(c.Day, verb.Dim), verb.Text(verb.OneLine(c.Account, 60), verb.Plain),
					verb.Text(verb.OneLine(c.Name, 40), verb.Plain),
					verb.Text(c.Cost.Cost.String()+" USD", verb.Plain),
					verb.Text(fmt.Sprintf("%d requests", c.Requests), verb.Dim))
			}
			return t.Write(w)
		})
	})
}
