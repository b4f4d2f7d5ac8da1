package runsc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ocispec"
	"github.com/airlock-mcp/airlock/runner/posture"
)

// The entries of a StateDir.
func configFile(state string) string    { return filepath.Join(state, "config.json") }
func logFile(state string) string       { return filepath.Join(state, "log") }
func panicFile(state string) string     { return filepath.Join(state, "panic") }
func controlSocket(state string) string { return filepath.Join(state, "control") }

// configure returns the sandbox's configuration as gVisor's kernel wants it, and
// the directories to give it as images, in the order of the configuration; those of live mounts
// come after them. Equal requests give equal configurations, as a template needs.
func configure(spec runner.Spec) (*specs.Spec, []string, error) {
	config, err := ocispec.Build(spec, ocispec.Identity{UID: posture.Nobody, GID: posture.Nobody})
	if err != nil {
		return nil, nil, err
	}
	// The kernel mounts what it has descriptors for; there is nothing at these paths.
	config.Root.Path = "/"
	var rest, images, live, broker []specs.Mount
	var directories []string
	for _, m := range config.Mounts {
		switch {
		case m.Destination == ocispec.SocketDir:
			m.Source = ocispec.SocketDir
			broker = append(broker, m)
		case slices.ContainsFunc(spec.Mounts, func(l runner.Mount) bool { return l.Live && l.Target == m.Destination }):
			live = append(live, m)
		case m.Type == "bind":
			directories = append(directories, m.Source)
			m.Type = "erofs"
			m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == "bind" })
			images = append(images, m)
		default:
			rest = append(rest, m)
		}
	}
	config.Mounts = slices.Concat(rest, images, live, broker)
	return config, directories, nil
}

func writeConfig(spec runner.Spec, config *specs.Spec) error {
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing the configuration of sandbox %q: %w", spec.ID, err)
	}
	return os.WriteFile(configFile(spec.StateDir), data, 0o600)
}
