package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/images"
)

// breath is the time between two measured runs, in which a pool is filled again.
const breath = 300 * time.Millisecond

// measureRuns takes a trivial run through the MCP face, with sandboxes kept
// ready and without, in turn with `runsc run` of the same image.
func measureRuns(ctx context.Context, at place, runs int) (err error) {
	pooled, err := openFace(ctx, at, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pooled.close()) }()
	cold, err := openFace(ctx, at, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cold.close()) }()
	bundle, err := newBundle(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeBundle(bundle)) }()

	taken := map[string]times{}
	ways := []struct {
		name string
		take func() (time.Duration, error)
	}{
		{"runsc", func() (time.Duration, error) { return runscRun(ctx, at, bundle) }},
		{"cold python", func() (time.Duration, error) { return cold.run(ctx, "python") }},
		{"cold node", func() (time.Duration, error) { return cold.run(ctx, "node") }},
		{"ready python", func() (time.Duration, error) { return pooled.run(ctx, "python") }},
		{"ready node", func() (time.Duration, error) { return pooled.run(ctx, "node") }},
	}
	for i := range runs + 1 {
		for _, way := range ways {
			took, err := way.take()
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if i > 0 { // the first of each only warms up
				taken[way.name] = append(taken[way.name], took)
			}
			time.Sleep(breath)
		}
	}
	beside := taken["runsc"]
	row("`runsc run` of python3 -c pass, the same image", beside, "", "")
	row("trivial Python run through MCP, no sandbox ready", taken["cold python"], "≤ 110", against(taken["cold python"], beside, "runsc run"))
	row("trivial Node run through MCP, no sandbox ready", taken["cold node"], "", against(taken["cold node"], beside, "runsc run"))
	row("trivial Python run through MCP, from the pool", taken["ready python"], "≤ 3.7", against(taken["ready python"], beside, "runsc run"))
	row("trivial Node run through MCP, from the pool", taken["ready node"], "≤ 3.7", against(taken["ready node"], beside, "runsc run"))
	return nil
}

// newBundle writes an OCI bundle that does as little as can be done.
func newBundle(at place) (string, error) {
	image, err := images.Open(at.home, "python")
	if err != nil {
		return "", err
	}
	defer image.Close()
	dir, err := os.MkdirTemp("", "airlock-bundle-")
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(map[string]any{
		"ociVersion": "1.0.0",
		"process":    map[string]any{"user": map[string]int{"uid": 0, "gid": 0}, "args": []string{"/usr/bin/python3", "-c", "pass"}, "env": image.Env, "cwd": "/"},
		"root":       map[string]any{"path": image.RootFS, "readonly": true},
		"mounts":     []map[string]string{{"destination": "/proc", "type": "proc", "source": "proc"}},
		"linux":      map[string]any{"namespaces": []map[string]string{{"type": "pid"}, {"type": "mount"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}}},
	})
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
}

// removeBundle also ends the mount that runsc leaves in its folder.
func removeBundle(bundle string) error {
	err := unix.Unmount(filepath.Join(bundle, "root", "null-netns"), unix.MNT_DETACH)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(bundle))
}

func runscRun(ctx context.Context, at place, bundle string) (time.Duration, error) {
	name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	cmd := exec.CommandContext(ctx, at.bin("runsc"), "--root="+filepath.Join(bundle, "root"), "--network=none", "--ignore-cgroups",
		"run", "--bundle="+bundle, name)
	started := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("runsc run: %w\n%s", err, out)
	}
	return time.Since(started), nil
}

// measureThroughput counts fresh sandboxes per second, four asked for at a time.
func measureThroughput(ctx context.Context, at place, _ int) (err error) {
	const asking, lasts = 4, 15 * time.Second
	f, err := openFace(ctx, at, 4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	var mu sync.Mutex
	var failed error
	done, started := 0, time.Now()
	var all sync.WaitGroup
	for range asking {
		all.Go(func() {
			for time.Since(started) < lasts {
				_, err := f.run(ctx, "python")
				mu.Lock()
				done, failed = done+1, errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	rate := float64(done) / time.Since(started).Seconds()
	fmt.Printf("%-58s %9.1f %9s %9s  %-10s %d runs in %v\n", "fresh sandboxes a second, sustained", rate, "", "", "≥ 25", done, lasts)
	return failed
}
