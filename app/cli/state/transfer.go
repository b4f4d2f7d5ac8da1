package state

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/state"
)

type stateImportVerb struct {
	verb.AuditFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run moves the state of this machine into the configured cluster.
func (v *stateImportVerb) Run(ctx context.Context, s *verb.Streams) error {
	return transfer(ctx, s, v.AuditFlags, v.JSON, "moved into the cluster", state.ImportState)
}

type stateExportVerb struct {
	verb.AuditFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run copies the state of the configured cluster to this machine.
func (v *stateExportVerb) Run(ctx context.Context, s *verb.Streams) error {
	return transfer(ctx, s, v.AuditFlags, v.JSON, "copied to this machine", state.ExportState)
}

func transfer(ctx context.Context, s *verb.Streams, f verb.AuditFlags, asJSON bool, done string,
	move func(context.Context, *config.Config) (int, error)) error {
	c, err := f.LoadPlaces()
	if err != nil {
		return err
	}
	if err := verb.GuardedIn(c, "moving the state"); err != nil {
		return err
	}
	rows, err := move(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		return verb.PrintLine(s.Out, map[string]int{"rows": rows})
	}
	_, err = fmt.Fprintf(s.Out, "%s: %d rows\n", done, rows)
	return err
}
