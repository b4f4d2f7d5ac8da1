package cli

import (
	"fmt"
	"runtime"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/release/build"
)

type versionVerb struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints Airlock's version and the versions that it was built with.
func (v *versionVerb) Run(s *verb.Streams) error {
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]string{
			"version": verb.Version, "revision": build.Revision(), "go": runtime.Version(),
			"system": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintln(s.Out, build.Line())
	return err
}
