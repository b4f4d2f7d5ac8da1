package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// ErrProving says that no sandbox has proved itself yet, and none has failed to.
var ErrProving = errors.New("no sandbox has proved itself yet")

const (
	// readyLine ends what a guest says at its start (docs/socket.md, step 1).
	readyLine = "ready\n"
	// anyKernel begins /proc/version of every kernel, and so what a guest says.
	anyKernel = "Linux version "
	// maxGreeting is how much a guest may say before its code, in bytes.
	maxGreeting = 8 << 10
	// proveAgain is how long Prove waits after a start that failed.
	proveAgain = 10 * time.Second
)

// readGreeting reads what a guest says up to its ready line, which is left out. It
// reads nothing behind that: each read is of no more than what must still come.
func readGreeting(r io.Reader) (string, error) {
	var said []byte
	for !strings.HasSuffix(string(said), readyLine) {
		from := len(said)
		said = append(said, make([]byte, len(readyLine)-begunReady(said))...)
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

// begunReady is how much of the ready line stands at the end of what was read.
func begunReady(said []byte) int {
	for n := len(readyLine) - 1; n > 0; n-- {
		if strings.HasSuffix(string(said), readyLine[:n]) {
			return n
		}
	}
	return 0
}

// judge reads what a guest said before its ready line, /proc/version and
// /proc/net/dev as it finds them: it must be answered by gVisor's kernel, and find no
// network device but loopback.
func judge(said string) error {
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
	if len(devices) != 1 || devices[0] != "lo" {
		return fmt.Errorf("code in it has the network devices %.200q, want loopback alone", devices)
	}
	return nil
}

// proofs is what the starts of a runner's sandboxes have shown of all of them.
type proofs struct {
	mu      sync.Mutex
	proved  bool      // a sandbox has proved itself
	refuted error     // one has shown that it does not hold: none is handed out any more
	failed  error     // why the last start failed
	at      time.Time // when it did
	trying  bool      // Prove has started one
}

// judged notes what became of one sandbox's proof and returns it.
func (p *proofs) judged(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.proved = true
	case p.refuted == nil:
		p.refuted = fmt.Errorf("a sandbox did not prove that it holds, so none is used: %w", err)
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

// Prove returns nil once a sandbox of this runner has proved itself, ErrProving while
// none has and none has failed, and else why the last one failed. Where no pool
// starts one, Prove does in the background, and closes it; after a failure not within
// ten seconds. It does not wait.
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
