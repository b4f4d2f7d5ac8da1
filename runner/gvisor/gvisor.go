// Package gvisor contains what both drivers share about gVisor: the required build,
// how it reports failures, and the format of its kernel's trace events.
package gvisor

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
)

// Version is the version of gVisor's module that Airlock is tested with, and the
// only one it runs.
const Version = "v0.0.0-20260905035102-160fafc42237"

// module is where gVisor's programs come from.
const module = "gvisor.dev/gvisor"

// CheckVersion returns an error if the gVisor program at path was built from a module
// version other than want; program is its name in errors. It reads the build information
// that the Go linker embedded (as printed by `go version -m`) and does not run the program.
func CheckVersion(program, path, want string) error {
	info, err := buildinfo.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no %s at %q", program, path)
	case err != nil:
		return fmt.Errorf("the %s at %q cannot be identified: %w", program, path, err)
	}
	if got := moduleVersion(info); got != want {
		return fmt.Errorf("the %s at %q is built from %s %s, but this Airlock is made for %s", program, path, module,
			got, want)
	}
	return nil
}

// build is the main package path that `go version -m` prints for Airlock's build of runsc.
const build = "github.com/airlock-mcp/airlock/build/gvisor/runsc"

// CheckBuild refuses a runsc that is not Airlock's own build, which passes on
// limits that others would silently leave out.
func CheckBuild(path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the runsc at %q cannot be identified: %w", path, err)
	}
	if info.Path != build {
		return fmt.Errorf("the runsc at %q is %s, not Airlock's own build %s", path, info.Path, build)
	}
	return nil
}

func moduleVersion(info *buildinfo.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			return "(replaced)"
		}
		return m.Version
	}
	return "(none)"
}
