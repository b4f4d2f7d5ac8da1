package ctrd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/ocispec"
	"github.com/airlock-mcp/airlock/runner/posture"
)

// The entries of a StateDir.
func shimFile(state string) string    { return filepath.Join(state, "shim.toml") }
func watchFile(state string) string   { return filepath.Join(state, "watch.json") }
func watchSocket(state string) string { return filepath.Join(state, "watch") }
func logFile(state string) string     { return filepath.Join(state, "log") }
func panicFile(state string) string   { return filepath.Join(state, "panic") }
func runscRoot(state string) string   { return filepath.Join(state, "r") }

// containerType is an annotation that the shim reads. Where it is not "sandbox",
// the shim connects no standard streams, and create hangs.
const containerType = "io.kubernetes.cri.container-type"

// configure returns the sandbox's configuration as the shim wants it.
func configure(spec runner.Spec, host posture.User) (*specs.Spec, error) {
	config, err := ocispec.Build(spec, ocispec.Identity{UID: host.UID, GID: host.GID})
	if err != nil {
		return nil, err
	}
	config.Root.Path = "rootfs" // the shim mounts it there, in the bundle
	config.Annotations = annotations(spec.Limits)
	return config, nil
}

// annotations returns the annotations for the shim, and the host resources that gVisor's
// kernel reports to the code.
func annotations(l runner.Limits) map[string]string {
	all := map[string]string{containerType: "sandbox"}
	for _, flag := range gvisor.Resources(l) {
		all[gvisor.Annotation(flag)] = flag.Value
	}
	return all
}

// shimConfig returns the shim's configuration as TOML: the path of runsc, its state
// directory and its flags.
func shimConfig(state, runsc string) string {
	flags := append(gvisor.Flags(),
		gvisor.Flag{Name: "log", Value: logFile(state)}, // not in the daemon's directory
		gvisor.Flag{Name: "panic-log", Value: panicFile(state)},
		gvisor.Flag{Name: "pod-init-config", Value: watchFile(state)}, // as reported by the kernel
	)
	var text strings.Builder
	fmt.Fprintf(&text, "binary_name = %s\nroot = %s\n[runsc_config]\n", tomlString(runsc), tomlString(runscRoot(state)))
	for _, flag := range flags {
		fmt.Fprintf(&text, "%s = %s\n", flag.Name, tomlString(flag.Value))
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
