// Package gvisor is what both drivers know about gVisor: which
// build they insist on, how it says why it failed, and how its kernel reports.
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

// CheckVersion refuses a program of gVisor that is built from another version of
// its module than want; program is its name in errors. It reads what the Go linker
// wrote into the program (the same that `go version -m` prints), so it does not
// depend on what the program says.
func CheckVersion(program, path, want string) error {
	info, err := buildinfo.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no %s at %q", program, path)
	case err != nil:
		return fmt.Errorf("the %s at %q cannot be identified: %w", program, path, err)
	}
	if got := moduleVersion(info); got != want {
		return fmt.Errorf("the %s at %q is built from %s %s, but this Airlock is made for %s", program, path, module, got, want)
	}
	return nil
}

// build is what `go version -m` says as the path of Airlock's own build of runsc.
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
