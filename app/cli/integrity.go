package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/app/system"
)

type integrityVerbs struct {
	Check integrityCheckVerb `cmd:"" help:"Look for startup hooks, and for what is not as it was sealed."`
	Seal  integritySealVerb  `cmd:"" help:"Remember program, configuration and images as they are now; nothing else is started from then on."`
}

type integrityCheckVerb struct {
	configFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Run makes the integrity checks of a start and prints the result.
func (v *integrityCheckVerb) Run(ctx context.Context, s *streams) error {
	c, err := v.loadPlaces()
	if err != nil {
		return err
	}
	found, err := system.CheckIntegrity(ctx, c, os.Environ(), true)
	if err != nil {
		return err
	}
	if v.JSON {
		if err := printLine(s.out, found); err != nil {
			return err
		}
		return failIf(!found.Verified)
	}
	sealed := "nothing is sealed: airlock integrity seal"
	if found.Seal != "" {
		sealed = "sealed in " + found.Seal
	}
	fmt.Fprintf(s.out, "%s: %s (%s)\n", found.Status, found.Message, sealed)
	for _, list := range [][]string{found.Hooks, found.Findings, found.Errors, found.Changed} {
		for _, line := range list {
			fmt.Fprintf(s.out, "  %s\n", oneLine(line, 400))
		}
	}
	for _, name := range found.Variables {
		fmt.Fprintf(s.out, "  %s is set in the environment\n", name)
	}
	return failIf(!found.Verified)
}

type integritySealVerb struct {
	configFlag
	Path string `placeholder:"FILE" help:"Where; by default in the state directory. One in /etc/airlock/installed.json counts before that."`
}

// Run writes the seal and prints its path.
func (v *integritySealVerb) Run(ctx context.Context, s *streams) error {
	c, err := v.loadPlaces()
	if err != nil {
		return err
	}
	if err := guarded("sealing the installation"); err != nil {
		return err
	}
	path, err := system.MakeSeal(ctx, c, v.Path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, path)
	return err
}
