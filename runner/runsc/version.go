package runsc

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
)

// module is where runsc comes from.
const module = "gvisor.dev/gvisor"

// checkVersion reads what the Go linker wrote into the program (the same that
// `go version -m` prints), so it does not depend on what the program says.
func checkVersion(path, want string) error {
	info, err := buildinfo.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no runsc at %q", path)
	case err != nil:
		return fmt.Errorf("the runsc at %q cannot be identified: %w", path, err)
	}
	if got := moduleVersion(info); got != want {
		return fmt.Errorf("the runsc at %q is built from %s %s, but this Airlock is made for %s", path, module, got, want)
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
