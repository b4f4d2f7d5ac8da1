package audit

import (
	"context"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/integrity"
)

// Integrity are the verbs of airlock integrity.
type Integrity struct {
	Check integrityCheckVerb `cmd:"" help:"Look for startup hooks, and for what is not as it was sealed."`
	Seal  integritySealVerb  `cmd:"" help:"Remember program, configuration and images as they are now; nothing else is started from then on."`
}

type integrityCheckVerb struct {
	verb.ConfigFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Run makes the integrity checks of a start and prints the result.
func (v *integrityCheckVerb) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	found, err := integrity.Check(ctx, c, os.Environ(), true)
	if err != nil {
		return err
	}
	if v.JSON {
		if err := verb.PrintLine(s.Out, found); err != nil {
			return err
		}
		return verb.FailIf(!found.Verified)
	}
	sealed := "nothing is sealed: airlock integrity seal"
	if found.Seal != "" {
		sealed = "sealed in " + found.Seal
	}
	fmt.Fprintf(s.Out, "%s: %s (%s)\n", found.Status, found.Message, sealed)
	for _, list := range [][]string{found.Hooks, found.Findings, found.Errors, found.Changed} {
		for _, line := range list {
			fmt.Fprintf(s.Out, "  %s\n", verb.OneLine(line, 400))
		}
	}
	for _, name := range found.Variables {
		fmt.Fprintf(s.Out, "  %s is set in the environment\n", name)
	}
	return verb.FailIf(!found.Verified)
}

type integritySealVerb struct {
	verb.ConfigFlag
	Path string `placeholder:"FILE" help:"Where; by default in the state directory. One in /etc/airlock/installed.json counts before that."`
}

// Run writes the seal and prints its path.
func (v *integritySealVerb) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	if err := verb.Guarded("sealing the installation"); err != nil {
		return err
	}
	path, err := integrity.MakeSeal(ctx, c, v.Path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, path)
	return err
}
