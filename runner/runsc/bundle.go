package runsc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/runner"
)

// What a StateDir holds. Names are short because runsc makes a socket in root.
func bundleDir(state string) string  { return filepath.Join(state, "b") }
func rootDir(state string) string    { return filepath.Join(state, "r") }
func logFile(state string) string    { return filepath.Join(state, "log") }
func panicFile(state string) string  { return filepath.Join(state, "panic") }
func groupsFile(state string) string { return filepath.Join(state, "cgroups") }

// flags are runsc's global flags. Each one that differs from runsc's default
// says why.
func flags(state string) []string {
	return []string{
		rootFlag(state),
		"--log=" + logFile(state), "--log-format=json", "--panic-log=" + panicFile(state),
		"--platform=systrap",
		"--network=none",
		// The broker's socket, and nothing else, lies where the code can open it.
		"--host-uds=open",
		// The kernel process opens no file of the host: only the file server does.
		"--directfs=false",
		// What is not a tmpfs of ours is read-only, so nothing is written under it.
		"--overlay2=none",
		// We place the processes ourselves.
		"--ignore-cgroups",
		// The images and wrapper trees do not change while a sandbox lives.
		"--file-access-mounts=exclusive",
		// A shared one is pinned by a mount on the host that outlives us.
		"--gofer-network-namespace=new",
		"--host-settings=ignore",
		"--pod-init-config=" + watchConfig(state),
	}
}

// rootFlag is also how Sweep recognises the processes of a dead sandbox.
func rootFlag(state string) string { return "--root=" + rootDir(state) }

func writeBundle(spec runner.Spec, config *specs.Spec) error {
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing the bundle of sandbox %q: %w", spec.ID, err)
	}
	if err := os.Mkdir(bundleDir(spec.StateDir), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bundleDir(spec.StateDir), "config.json"), data, 0o600)
}

// served lists where the file server must have folders of the host: the root
// and every bind mount, as sorted paths inside.
func served(config *specs.Spec) []string {
	points := []string{"/"}
	for _, m := range config.Mounts {
		if m.Type == "bind" {
			points = append(points, m.Destination)
		}
	}
	slices.Sort(points)
	return points
}

// resolve replaces the spec's paths by their real ones: runsc refuses to mount
// through a symbolic link.
func resolve(spec runner.Spec) (runner.Spec, error) {
	spec.Mounts = slices.Clone(spec.Mounts)
	paths := []*string{&spec.Image.RootFS, &spec.SocketDir, &spec.StateDir}
	for i := range spec.Mounts {
		paths = append(paths, &spec.Mounts[i].Source)
	}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(*path)
		if err != nil {
			return spec, fmt.Errorf("looking for what sandbox %q is made of: %w", spec.ID, err)
		}
		*path = real
	}
	return spec, nil
}
