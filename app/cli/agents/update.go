package agents

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/setup"
)

type agentsUpdateVerb struct {
	agentsFlags
	Agent string  `arg:"" help:"The ID of an agent."`
	Name  *string `placeholder:"NAME" help:"What people call it."`
	Type  *string `placeholder:"TYPE" help:"How far it is trusted: untrusted, supervised, autonomous or trusted."`
	agentSettings
	Expires *time.Duration `placeholder:"DURATION" help:"When it expires, from now; 0: never."`
	JSON    bool           `name:"json" help:"Print JSON."`
}

// Run changes an agent. Flags that are not given leave their settings as they are.
func (v *agentsUpdateVerb) Run(ctx context.Context, s *verb.Streams) error {
	change, err := v.change()
	if err != nil {
		return verb.Usage(err.Error(), "airlock agents update --help")
	}
	if change == (agents.Change{}) {
		return verb.Usage("no setting is given", "airlock agents update AGENT --type supervised")
	}
	if err := v.guarded("changing an agent"); err != nil {
		return err
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		agent, err := a.Change(ctx, v.Agent, change, setup.Principal(), func(_, _ agents.Agent) error { return nil })
		var invalid *agents.InvalidError
		switch {
		case errors.As(err, &invalid):
			return verb.Usage(err.Error(), "airlock agents update --help")
		case errors.Is(err, agents.ErrKilled):
			return verb.WithHint(err, "airlock agents create NAME", verb.ExitUsage)
		case err != nil || !v.JSON:
			return err
		}
		return verb.PrintLine(s.Out, agent)
	})
}

// none is the value of a flag for an empty list.
var none = []string{"none"}

// change returns the change in the flags.
func (v *agentsUpdateVerb) change() (c agents.Change, err error) {
	c.Name, c.Type = v.Name, (*agents.Type)(v.Type)
	permissions := v.permissions()
	given := false
	for _, list := range []*[]string{&permissions.AllowedEngines, &permissions.AllowedTools,
		&permissions.BlockedTools} {
		given = given || *list != nil
		if slices.Equal(*list, none) {
			*list = []string{}
		}
	}
	if given {
		c.Permissions = &permissions
	}
	limits, err := v.budget()
	if limits != (budget.Limits{}) {
		c.Budget = &limits
	}
	switch {
	case v.Expires == nil:
	case *v.Expires < 0:
		return c, errors.New("--expires is in the past")
	default:
		expires := agents.Never
		if *v.Expires > 0 {
			expires = time.Now().Add(*v.Expires).UTC().Format(time.RFC3339)
		}
		c.Expires = &expires
	}
	return c, err
}
