// Package build returns the version line of this program, and the commit that it was built from.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/airlock-mcp/airlock/app/release"
)

// Line is what version and --version print, without a line end.
func Line() string {
	revision := Revision()
	if revision != "" {
		revision = "+" + revision
	}
	return fmt.Sprintf("airlock %s%s (%s, %s/%s)", release.Version, revision, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// Revision returns the commit that the program was built from, in twelve digits, when
// the build recorded it; else "".
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return setting.Value[:12]
		}
	}
	return ""
}
