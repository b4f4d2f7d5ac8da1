package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// isolates is a running workerd that makes a fresh isolate for each program it
// is sent: see workerd/loader.mjs.
type isolates struct {
	client *http.Client
	url    string
}

// workerdProgram is the program itself: what npm calls workerd only starts it.
func (b *bench) workerdProgram() string {
	arch := map[string]string{"amd64": "64", "arm64": "arm64"}[runtime.GOARCH]
	return filepath.Join(b.root, "test", "bench", "node_modules", "@cloudflare", "workerd-linux-"+arch, "bin",
		"workerd")
}

// openIsolates starts workerd, which reports its port on a dedicated descriptor.
func (b *bench) openIsolates(undo *cleanup.Stack) (*isolates, error) {
	events, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer events.Close()
	cmd := exec.Command(b.workerdProgram(), "serve", "--experimental", "--control-fd=3",
		filepath.Join(b.root, "test", "bench", "workerd", "config.capnp"))
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		return nil, fmt.Errorf("starting workerd: %w", err)
	}
	undo.Add(func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	})
	var listening struct {
		Port int `json:"port"`
	}
	if err := json.NewDecoder(events).Decode(&listening); err != nil {
		return nil, fmt.Errorf("waiting until workerd listens: %w", err)
	}
	i := &isolates{client: &http.Client{Transport: &http.Transport{}},
		url: fmt.Sprintf("http://127.0.0.1:%d/", listening.Port)}
	undo.Add(func() error { i.client.CloseIdleConnections(); return nil })
	return i, nil
}

// run runs a program in a fresh isolate, over a connection that stays open.
func (i *isolates) run(ctx context.Context, program string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url, bytes.NewReader([]byte(program)))
	if err != nil {
		return err
	}
	response, err := i.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || string(answer) != "1" {
		return fmt.Errorf("a fresh isolate answered %s: %.200s", response.Status, answer)
	}
	return nil
}

// trivialRun is how long a client waits for a trivial program in JavaScript.
func (i *isolates) trivialRun(javascript language) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return timed(func() error { return i.run(ctx, javascript.trivial) })
	}
}
