package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// selfTestTimeout bounds the self-test.
const selfTestTimeout = 20 * time.Second

// probe is what the self-test runs: a guest (docs/socket.md) in shell that tells
// which kernel answers it and which network devices there are.
const probe = `echo ready; read -r _; read -r kernel </proc/version; echo "$kernel"
while read -r device _; do case $device in *:*) echo "$device";; esac; done </proc/net/dev`

// selfTest is the proof that sandboxes hold, made once, beside whatever comes
// first. No sandbox is handed out before it is there.
type selfTest struct {
	done chan struct{} // closed when err is set
	err  error
}

// begin starts the self-test in a sandbox of the given image.
func (t *selfTest) begin(r *Runner, image Image) {
	t.done = make(chan struct{})
	ctx, leave, err := r.enter(context.Background())
	if err != nil {
		t.err = err
		close(t.done)
		return
	}
	go func() {
		defer leave()
		defer close(t.done)
		ctx, cancel := context.WithTimeout(ctx, selfTestTimeout)
		defer cancel()
		if err := r.prove(ctx, image); err != nil {
			t.err = fmt.Errorf("the self-test of sandboxes failed, so none is used: %w", err)
		}
	}()
}

// passed waits for the self-test and returns why sandboxes must not be used.
func (t *selfTest) passed(ctx context.Context) error {
	if t.done == nil {
		return nil
	}
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Prove waits for the self-test and returns why sandboxes must not be used, if
// that is so. Without Options.SelfTest there is nothing to wait for.
func (r *Runner) Prove(ctx context.Context) error { return r.selfTest.passed(ctx) }

// prove runs the probe: code must be answered by gVisor's kernel, and find no
// network device but loopback.
func (r *Runner) prove(ctx context.Context, image Image) (err error) {
	image.Args = []string{"/bin/sh", "-c", probe}
	s, err := r.open(ctx, Request{Image: image, Limits: DefaultLimits()}, nil, atOnce)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Go(); err != nil {
		return err
	}
	// What it says counts. How it ended is the driver's to know, and one that has
	// to ask others can be too late for so short a life.
	_, ended := s.Wait(ctx)
	if err := s.Drain(ctx); err != nil {
		return errors.Join(err, ended)
	}
	if err := judge(string(s.Stdout().Head)); err != nil {
		return errors.Join(err, ended)
	}
	return nil
}

// judge reads what the probe wrote.
func judge(wrote string) error {
	kernel, devices, _ := strings.Cut(strings.TrimSpace(wrote), "\n")
	switch {
	case !strings.HasPrefix(kernel, "Linux version ") || !strings.Contains(kernel, "gvisor"):
		return fmt.Errorf("code in it is not answered by gVisor's kernel: %q", kernel)
	case devices != "lo:":
		return fmt.Errorf("code in it has the network devices %q, want loopback alone", devices)
	}
	return nil
}
