package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/state"
)

type stateRotateVerb struct {
	verb.AuditFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run makes new keys and prints the names of their files.
func (v *stateRotateVerb) Run(ctx context.Context, s *verb.Streams) error {
	if err := verb.Guarded("rotating keys"); err != nil {
		return err
	}
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	names, err := state.RotateKeys(ctx, c)
	if err != nil {
		return err
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"rotated": names})
	}
	if len(names) == 0 {
		_, err = fmt.Fprintln(s.Out, "there is no key of stored data yet")
		return err
	}
	_, err = fmt.Fprintf(s.Out, "rotated: %s\n", strings.Join(names, ", "))
	return err
}
