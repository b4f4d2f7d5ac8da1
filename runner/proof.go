package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrProving is returned while the isolation check of the first sandbox is still running.
var ErrProving = errors.New("the first sandbox is starting: its isolation is not checked yet")

const (
	// readyLine ends a guest's greeting (docs/socket.md, step 1).
	readyLine = "ready\n"
	// anyKernel is the start of /proc/version of every kernel, and so of a greeting.
	anyKernel = "Linux version "
	// maxGreeting is the maximum size of a greeting, in bytes.
	maxGreeting = 8 << 10
	// proveAgain is how long Prove waits after a start that failed.
	proveAgain = 10 * time.Second
)

// readGreeting reads a guest's greeting up to its ready line, which is not returned. It
// reads nothing after that line: no read is larger than what must still follow.
func readGreeting(r io.Reader) (string, error) {
	var said []byte
	for !strings.HasSuffix(string(said), readyLine) {
		from := len(said)
		said = append(said, make([]byte, len(readyLine)-partialReady(said))...)
		n, err := io.ReadFull(r, said[from:])
		said = said[:from+n]
		begin := string(said[:min(len(said), len(anyKernel))])
		switch {
		case err != nil:
			return "", errors.New("its guest ended before it was ready")
		case !strings.HasPrefix(anyKernel, begin) && !strings.HasPrefix(readyLine, begin), len(said) > maxGreeting:
			return "", fmt.Errorf("its guest wrote %.100q instead of its ready line", said)
		}
	}
	return string(said[:len(said)-len(readyLine)]), nil
}

// partialReady returns the length of the longest prefix of the ready line at the end of greeting.
func partialReady(said []byte) int {
	for n := len(readyLine) - 1; n > 0; n-- {
		if strings.HasSuffix(string(said), readyLine[:n]) {
			return n
		}
	}
	return 0
}

// checkGreeting checks a guest's greeting, which is /proc/version and /proc/net/dev as the
// guest reads them: the kernel must be gVisor's, and the only network devices loopback and, with
// network, NetworkDevice.
func checkGreeting(said string, network bool) error {
	kernel, rest, _ := strings.Cut(said, "\n")
	if !strings.HasPrefix(kernel, anyKernel) || !strings.Contains(kernel, "gvisor") {
		return fmt.Errorf("code in it is not answered by gVisor's kernel: %.200q", kernel)
	}
	var devices []string
	for line := range strings.Lines(rest) {
		if name, _, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			devices = append(devices, name)
		}
	}
	want := []string{"lo"}
	if network {
		want = append(want, NetworkDevice)
	}
	if !slices.Equal(devices, want) {
		return fmt.Errorf("code in it has the network devices %.200q, want %q", devices, want)
	}
	return nil
}

// proofs is what the starts of a runner's sandboxes have shown of all of them.
type proofs struct {
	mu      sync.Mutex
	proved  bool      // a sandbox has passed its isolation check
	refuted error     // one has shown that it does not hold: none is handed out any more
	failed  error     // why the last start failed
	at      time.Time // when it did
	trying  bool      // Prove has started one
}

// record stores the result of one sandbox's proof and returns it.
func (p *proofs) record(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.proved = true
	case p.refuted == nil:
		p.refuted = fmt.Errorf("a sandbox failed its isolation check, so no sandbox is used: %w", err)
	}
	return err
}

// started notes how a start ended.
func (p *proofs) started(err error) {
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed, p.at = err, time.Now()
}

// hold returns why no sandbox may be handed out.
func (p *proofs) hold() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuted
}

// Prove returns nil once a sandbox of this runner has passed its isolation check,
// ErrProving while none has passed and none has failed, and otherwise the error of the
// last start. If no pool starts sandboxes, Prove starts one in the background and closes
// it; it tries again ten seconds after a failure. It does not wait.
func (r *Runner) Prove(req Request) error {
	p := &r.proofs
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.refuted != nil:
		return p.refuted
	case p.proved:
		return nil
	case !p.trying && time.Since(p.at) >= proveAgain && (r.pool == nil || r.pool.base == 0):
		ctx, done, err := r.enter(context.Background())
		if err != nil {
			return err
		}
		p.trying = true
		go func() {
			defer done()
			r.tryOne(ctx, req)
		}()
	}
	if p.failed != nil {
		return p.failed
	}
	return ErrProving
}

// tryOne starts a sandbox for Prove, and closes it.
func (r *Runner) tryOne(ctx context.Context, req Request) {
	s, err := r.open(ctx, req, nil, atOnce)
	if err == nil {
		r.release(s)
	}
	r.proofs.mu.Lock()
	defer r.proofs.mu.Unlock()
	r.proofs.trying = false
}
