package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// daemon is a running `airlock serve` with a separate state directory, directory for
// temporary files and, if this user can create one, control group.
type daemon struct {
	program   string
	home      string
	temporary string
	config    string
	url       string
	token     string
	process   *os.Process
	group     *cgroup.Group // may be nil
}

// configuration returns the daemon's configuration. Its retention limits are so low that
// they are reached soon, so that later growth is a defect.
func configuration(self string) map[string]any {
	return map[string]any{
		"mcpServers":  map[string]any{"desk": map[string]any{"command": self, "args": []string{"-serve"}}},
		"servers":     map[string]any{"desk": map[string]any{"trustAnnotations": true}},
		"limits":      map[string]any{"rate": "100000/5s", "toolRate": "100000/5s", "sessionCalls": 10_000_000},
		"replay":      map[string]any{"size": "1MiB"},
		"attachments": map[string]any{"size": "1MiB"},
		"audit":       map[string]any{"argumentsSize": "1MiB"},
	}
}

// startDaemon starts the program that the repository has built, with its images.
func startDaemon(ctx context.Context, root string, undo *cleanup.Stack) (*daemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { return os.RemoveAll(home) })
	d := &daemon{
		program: filepath.Join(root, "bin", "airlock"), home: home,
		temporary: filepath.Join(home, "tmp"), config: filepath.Join(home, "airlock.yaml"),
	}
	text, err := json.Marshal(configuration(self))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Symlink(filepath.Join(root, ".airlock", "images"), filepath.Join(home, "images")),
		os.Mkdir(d.temporary, 0o700), os.WriteFile(d.config, text, 0o600)); err != nil {
		return nil, err
	}
	if d.token, err = d.newToken(ctx); err != nil {
		return nil, err
	}
	if d.group, err = ownGroup(undo); err != nil {
		return nil, err
	}
	return d, d.start(undo)
}

// command is the program with what all its processes get.
func (d *daemon) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.program, append(args, "--config", d.config)...)
	cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+d.home, "TMPDIR="+d.temporary)
	return cmd
}

func (d *daemon) newToken(ctx context.Context) (string, error) {
	cmd := d.command(ctx, "tokens", "create", "soak")
	var said bytes.Buffer
	cmd.Stderr = &said
	token, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("making a token: %w: %s", err, &said)
	}
	return strings.TrimSpace(string(token)), nil
}

// ownGroup makes a control group, under which those of the sandboxes will be.
func ownGroup(undo *cleanup.Stack) (*cgroup.Group, error) {
	tree, err := cgroup.Find()
	if err != nil {
		return nil, nil // control groups are not counted then
	}
	group, err := tree.New(fmt.Sprintf("airlock-soak-%d", os.Getpid()), cgroup.Limits{})
	if err != nil {
		return nil, err
	}
	undo.Add(func() error {
		ctx := context.Background()
		return errors.Join(group.Kill(ctx), group.Remove(ctx))
	})
	return group, nil
}

// start starts the daemon and waits until it can be reached.
func (d *daemon) start(undo *cleanup.Stack) error {
	cmd := d.command(context.Background(), "serve", "--listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if d.group != nil {
		err = d.group.Start(cmd)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	d.process = cmd.Process
	undo.Add(func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the daemon does not say where it is: %w", err)
	}
	d.url = strings.TrimSpace(line)
	return nil
}
