package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is Airlock's own; releases change it.
const version = "0.1.0"

type versionVerb struct{}

// Run prints Airlock's version and what it was built with.
func (versionVerb) Run(s *streams) error {
	_, err := fmt.Fprintf(s.out, "airlock %s%s (%s, %s/%s)\n", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
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
