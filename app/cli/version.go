package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// The version of Airlock and its date, which releases change.
const (
	version     = "0.1.0"
	versionDate = "2026-11-22"
)

type versionVerb struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints Airlock's version and what it was built with.
func (v *versionVerb) Run(s *streams) error {
	if v.JSON {
		return printLine(s.out, map[string]string{
			"version": version, "revision": strings.TrimPrefix(revision(), "+"), "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintln(s.out, versionLine())
	return err
}

// versionLine is what version and --version print.
func versionLine() string {
	return fmt.Sprintf("airlock %s%s (%s, %s/%s)", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// revision returns "+" and the commit that the program was built from, when
// the build recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "+" + setting.Value[:12]
		}
	}
	return ""
}
