package runsc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

// checkPatience bounds the self-test.
const checkPatience = 20 * time.Second

// Check proves that a sandbox starts here, or says why not: it runs runsc's
// own program, which is statically linked, in an otherwise empty sandbox, and
// wants to hear from it.
func (d *Driver) Check(ctx context.Context) (err error) {
	if lack := d.host.Lack(); lack != nil && !d.opts.Unenforced {
		return lack
	}
	if err := d.checkNamespaces(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	dir, err := os.MkdirTemp("", "airlock-check-")
	if err != nil {
		return err
	}
	undo.Add(func() error { return os.RemoveAll(dir) })
	spec, err := d.checkSpec(dir)
	if err != nil {
		return fmt.Errorf("preparing a test sandbox: %w", err)
	}
	p, err := d.Start(ctx, spec)
	if err != nil {
		return fmt.Errorf("starting a test sandbox: %w", err)
	}
	undo.Add(p.Close)
	return hear(ctx, p)
}

// checkNamespaces proves what most often is missing, to say it plainly.
func (d *Driver) checkNamespaces() error {
	cmd := exec.Command(d.opts.Path, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("this host does not let this user (%d) make namespaces, which sandboxes need: %w", os.Geteuid(), err)
	}
	return nil
}

// checkSpec makes a sandbox whose image is one program.
func (d *Driver) checkSpec(dir string) (runner.Spec, error) {
	const id = "check"
	spec := runner.Spec{
		ID:        id + "-" + strings.ToLower(strings.TrimPrefix(filepath.Base(dir), "airlock-check-")),
		Image:     runner.Image{Name: "check", RootFS: filepath.Join(dir, "root"), Args: []string{"/runsc", "--version"}},
		Limits:    runner.DefaultLimits(),
		SocketDir: filepath.Join(dir, "open", "run"),
		StateDir:  filepath.Join(dir, "state"),
	}
	root := spec.Image.RootFS
	paths := []string{spec.SocketDir, spec.StateDir}
	for _, mountPoint := range []string{"proc", "sys", "dev", "tmp", "workspace", "run/airlock", "opt/airlock/client"} {
		paths = append(paths, filepath.Join(root, mountPoint))
	}
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return spec, err
		}
	}
	return spec, copyFile(d.opts.Path, filepath.Join(root, "runsc"))
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// hear wants the test sandbox to print the version and end.
func hear(ctx context.Context, p runner.Process) error {
	output := make(chan string, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(p.Stdout(), 4096))
		if err != nil {
			text = nil
		}
		output <- string(text)
	}()
	exit, err := p.Wait(ctx)
	if err != nil {
		return fmt.Errorf("running a test sandbox: %w", err)
	}
	if text := <-output; exit != (runner.Exit{}) || !strings.HasPrefix(text, "runsc version ") {
		return fmt.Errorf("running a test sandbox: it ended with %+v and wrote %q", exit, text)
	}
	return nil
}
