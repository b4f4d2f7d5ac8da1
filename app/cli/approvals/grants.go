package approvals

import (
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
)

type grantsVerb struct {
	verb.PeriodFlags `set:"dated=was given"`

	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the grants that the running daemon has, oldest first.
func (v *grantsVerb) Run(s *verb.Streams) error {
	period, err := v.Period()
	if err != nil {
		return err
	}
	grants, err := daemon.Grants()
	if err != nil {
		return verb.NoDaemon(err)
	}
	grants = slices.DeleteFunc(grants, func(g approval.Grant) bool { return !period.Contains(g.Given) })
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"grants": grants})
	}
	if len(grants) == 0 {
		fmt.Fprintln(s.Err, "airlock: no approval covers further calls")
	}
	for _, g := range grants {
		if _, err := fmt.Fprintf(s.Out, "%s  %s/%s  for %s  until %s  calls %d  by %s\n", g.ID,
			verb.OneLine(g.ServerID, 60), verb.OneLine(g.ToolName, 60), verb.OneLine(g.Principal, 60),
			g.Until.UTC().Format(time.RFC3339), g.Used, verb.OneLine(g.By, 60)); err != nil {
			return err
		}
	}
	return nil
}

type withdrawVerb struct {
	Grant string `arg:"" help:"The grant, as approvals grants names it."`
}

// Run withdraws a grant of the running daemon. Any process of the user may: it only reduces what is permitted.
func (v *withdrawVerb) Run(s *verb.Streams) error {
	if err := daemon.WithdrawGrant(v.Grant); err != nil {
		return verb.NoDaemon(err)
	}
	_, err := fmt.Fprintf(s.Err, "airlock: %s is withdrawn; further calls are asked about again\n", verb.Clean(v.Grant))
	return err
}
