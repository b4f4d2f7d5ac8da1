package cli

import (
	"fmt"
	"runtime"

	"github.com/airlock-mcp/airlock/app/release"
	"github.com/airlock-mcp/airlock/app/release/build"
)

const version = release.Version

type versionVerb struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints Airlock's version and the versions that it was built with.
func (v *versionVerb) Run(s *streams) error {
	if v.JSON {
		return printLine(s.out, map[string]string{
			"version": version, "revision": build.Revision(), "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintln(s.out, build.Line())
	return err
}
