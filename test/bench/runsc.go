package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// bundle is an OCI bundle for `runsc run`: one of the images and a command in it
// that does nothing.
type bundle struct {
	runsc, dir string
	started    atomic.Int64
}

// openBundle writes a bundle that asks for as little as can be asked for.
func (b *bench) openBundle(lang language, undo *cleanup.Stack) (*bundle, error) {
	image, err := images.Open(b.home, lang.id)
	if err != nil {
		return nil, err
	}
	undo.Add(image.Close)
	dir, err := os.MkdirTemp("", "airlock-bundle-")
	if err != nil {
		return nil, err
	}
	made := &bundle{runsc: b.bin("runsc"), dir: dir}
	undo.Add(made.remove)
	config, err := json.Marshal(map[string]any{
		"ociVersion": "1.0.0",
		"process": map[string]any{"user": map[string]int{"uid": 0, "gid": 0}, "args": lang.nothing, "env": image.Env,
			"cwd": "/"},
		"root":   map[string]any{"path": image.RootFS, "readonly": true},
		"mounts": []map[string]string{{"destination": "/proc", "type": "proc", "source": "proc"}},
		"linux": map[string]any{"namespaces": []map[string]string{{"type": "pid"}, {"type": "mount"},
			{"type": "network"}, {"type": "ipc"}, {"type": "uts"}}},
	})
	if err != nil {
		return nil, err
	}
	return made, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
}

// run is how long `runsc run` takes.
func (b *bundle) run(ctx context.Context) (sample, error) {
	cmd := exec.CommandContext(ctx, b.runsc, "--root="+filepath.Join(b.dir, "root"), "--network=none",
		"--ignore-cgroups",
		"run", "--bundle="+b.dir, fmt.Sprintf("bench-%d", b.started.Add(1)))
	return timed(func() error {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("runsc run: %w\n%s", err, out)
		}
		return nil
	})
}

// remove also ends the mounts that runsc leaves in its directory: one on top of the
// other, where several began at once.
func (b *bundle) remove() error {
	var err error
	for err == nil {
		err = unix.Unmount(filepath.Join(b.dir, "root", "null-netns"), unix.MNT_DETACH)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) { // no child, or no other one
		err = nil
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
