package ctrd

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/ocispec"
	"github.com/airlock-mcp/airlock/runner/posture"
)

// What a StateDir holds.
func shimFile(state string) string    { return filepath.Join(state, "shim.toml") }
func watchFile(state string) string   { return filepath.Join(state, "watch.json") }
func watchSocket(state string) string { return filepath.Join(state, "watch") }
func logFile(state string) string     { return filepath.Join(state, "log") }
func panicFile(state string) string   { return filepath.Join(state, "gvisor_panic.log") }
func userLogFile(state string) string { return filepath.Join(state, "gvisor.log") }
func runscRoot(state string) string   { return filepath.Join(state, "r") }

// Annotations that the shim reads.
const (
	containerType = "io.kubernetes.cri.container-type"        // "sandbox", or the shim connects no standard streams and create hangs
	logFolder     = "io.kubernetes.cri.sandbox-log-directory" // for panics of gVisor's kernel
)

// configure returns the sandbox's configuration as the shim wants it.
func configure(spec runner.Spec, host posture.User) (*specs.Spec, error) {
	config, err := ocispec.Build(spec, ocispec.Identity{UID: host.UID, GID: host.GID})
	if err != nil {
		return nil, err
	}
	config.Root.Path = "rootfs" // where the shim mounts it, in the bundle
	config.Annotations = annotations(spec)
	return config, nil
}

// annotations tell the kernel what to show to the code, and how many files each
// writable file system may have: gVisor takes half the number of pages of the
// host's memory, so the host's memory is said to be twice as many pages.
func annotations(spec runner.Spec) map[string]string {
	const page, writable = 4096, 3 // writable file systems
	inodes := max(spec.Limits.Inodes/writable, 1)
	cpus := min(max(int(math.Ceil(spec.Limits.CPUs)), 2), runtime.NumCPU())
	return map[string]string{
		containerType:                  "sandbox",
		logFolder:                      spec.StateDir,
		"io.airlock.total-memory":      strconv.FormatInt(spec.Limits.Memory, 10),
		"io.airlock.total-host-memory": strconv.FormatInt(2*page*inodes, 10),
		"io.airlock.cpu-num":           strconv.Itoa(cpus),
	}
}

// shimConfig is the shim's configuration, as TOML: which runsc, where it keeps its
// state, and its flags. Each flag that differs from runsc's default says why.
func shimConfig(state, runsc string) string {
	flags := [][2]string{
		{"log", logFile(state)}, // and not the daemon's folder
		{"platform", "systrap"},
		{"network", "none"},
		{"host-uds", "open"},                  // the broker's socket, and nothing else, lies where the code can open it
		{"directfs", "false"},                 // the kernel process opens no file of the host
		{"overlay2", "none"},                  // what is not a tmpfs of ours is read-only, so nothing is written under it
		{"ignore-cgroups", "true"},            // Airlock places the processes itself
		{"file-access-mounts", "exclusive"},   // nobody else changes what is mounted
		{"pod-init-config", watchFile(state)}, // what the kernel reports
	}
	var text strings.Builder
	fmt.Fprintf(&text, "binary_name = %s\nroot = %s\n[runsc_config]\n", tomlString(runsc), tomlString(runscRoot(state)))
	for _, flag := range flags {
		fmt.Fprintf(&text, "%s = %s\n", flag[0], tomlString(flag[1]))
	}
	return text.String()
}

// tomlString quotes a text: a JSON string is a basic string of TOML v1.0.0 too.
func tomlString(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(quoted)
}

// writeFiles writes what the shim and gVisor's kernel read.
func writeFiles(state, runsc string) error {
	for path, data := range map[string]string{
		shimFile(state):  shimConfig(state, runsc),
		watchFile(state): string(gvisor.TraceSession(watchSocket(state))),
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// resolve replaces the spec's paths by their real ones, as the kernel names them.
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
