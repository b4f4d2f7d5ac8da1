package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Backend answers a host: it is a daemon or this process. Read and Write may be called
// concurrently.
type Backend interface {
	io.ReadWriter
	// CloseWrite reports to the backend that the host has closed its end.
	CloseWrite() error
	// Close ends the backend and waits for its work to end. It may be called twice.
	Close() error
}

// maxMoves is the maximum number of backends in a row that may end without an answer.
const maxMoves = 5

// Relay connects a host, which writes one message on each line of in and reads from out,
// with a backend. If the backend ends first, open requests fail with a retryable error, and
// Relay repeats the host's initialize to the backend that next returns. Relay returns nil
// when the host closes in or ctx ends.
func Relay(ctx context.Context, in io.Reader, out io.Writer, first Backend,
	next func(context.Context) (Backend, error)) error {
	r := &relay{out: out, open: map[string]bool{}, moved: make(chan struct{})}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hostGone := make(chan struct{})
	go r.fromHost(ctx, in, hostGone) // one read of in may outlive the relay, as in Serve
	backend := first
	for moves := 0; ; {
		answered, err := r.serve(ctx, backend, hostGone)
		err = errors.Join(err, backend.Close())
		select {
		case <-hostGone:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		if moves++; answered {
			moves = 1
		}
		if moves > maxMoves {
			return fmt.Errorf("talking to the host: %w", err)
		}
		r.leave()
		if backend, err = r.next(ctx, next, hostGone); err != nil || backend == nil {
			return err
		}
	}
}

// next finds another backend. It returns nil if the host has closed its end meanwhile, or ctx
// is done.
func (r *relay) next(ctx context.Context, find func(context.Context) (Backend, error),
	hostGone <-chan struct{}) (Backend, error) {
	finding, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		select {
		case <-hostGone:
			stop()
		case <-finding.Done():
		}
	})
	backend, err := find(finding)
	if finding.Err() == nil {
		return backend, err
	}
	if err == nil && backend != nil {
		return nil, backend.Close()
	}
	return nil, nil
}

// relay is the state of a host's conversation.
type relay struct {
	writing sync.Mutex // serializes messages to out
	out     io.Writer

	mu          sync.Mutex // guards what follows
	backend     Backend    // nil while it is replaced
	moved       chan struct{}
	generation  int             // of the backend; 0 is the first
	open        map[string]bool // the host's requests without an answer, by ID
	greeting    *message        // the host's initialize
	greeted     bool            // initialize was answered
	initialized []byte          // the host's notifications/initialized
}

// fromHost forwards the host's lines until the host closes its end, and then closes gone.
func (r *relay) fromHost(ctx context.Context, in io.Reader, gone chan<- struct{}) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, refusal, forHost, err := server.ReadLine(lines)
		switch {
		case forHost:
			r.write(append(refusal, '\n'))
		case refusal != nil:
			r.pass(ctx, append(refusal, '\n'))
		case len(line) > 0:
			r.pass(ctx, line)
		}
		if err != nil {
			break
		}
	}
	close(gone)
	r.mu.Lock()
	backend := r.backend
	r.mu.Unlock()
	if backend != nil { // otherwise serve closes it
		_ = backend.CloseWrite() // it may have ended just now
	}
}

// await waits for a backend and returns it, or nil if ctx is done first.
func (r *relay) await(ctx context.Context) Backend {
	for {
		r.mu.Lock()
		backend, moved := r.backend, r.moved
		r.mu.Unlock()
		if backend != nil {
			return backend
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil
		}
	}
}

// pass forwards one line of the host, and records its requests.
func (r *relay) pass(ctx context.Context, line []byte) {
	var backend Backend
	for backend == nil {
		if r.await(ctx) == nil {
			return
		}
		r.mu.Lock()
		if backend = r.backend; backend != nil { // otherwise it has ended meanwhile
			line = r.noteLocked(line)
		}
		r.mu.Unlock()
	}
	if line != nil {
		// If this fails, the backend has ended, and leave answers the request.
		_, _ = backend.Write(line)
	}
}

// noteLocked records the requests in a line of the host, and returns the line for the backend.
// It returns nil for an answer to a former backend.
func (r *relay) noteLocked(line []byte) []byte {
	for _, m := range messagesOf(line) {
		switch {
		case m.isRequest():
			r.open[m.id()] = true
			if m.Method == "initialize" {
				kept := m
				kept.line = bytes.Clone(line)
				r.greeting, r.greeted, r.initialized = &kept, false, nil
			}
		case m.Method == "notifications/initialized":
			r.initialized = bytes.Clone(line)
		case m.Method == "notifications/cancelled":
			var params struct {
				ID json.RawMessage `json:"requestId"`
			}
			if strictjson.UnmarshalOpen(m.Params, &params) == nil {
				delete(r.open, string(params.ID)) // it may never be answered
			}
		case m.isResponse() && r.generation > 0:
			return r.ownLocked(m)
		}
	}
	return line
}

// prefix returns the prefix for the IDs of a backend's requests to the host. The requests of
// the first backend are not renamed; those of later ones are, so that an answer to a former
// backend is not taken for the answer to a request with the same ID.
func (r *relay) prefix() string { return fmt.Sprintf("airlock-%d-", r.generation) }

// ownLocked returns the host's answer with the original ID of the backend's request, or nil if
// the answer is for a former backend.
func (r *relay) ownLocked(m message) []byte {
	var named string
	if strictjson.UnmarshalOpen(m.ID, &named) != nil {
		return nil
	}
	own, ok := bytes.CutPrefix([]byte(named), []byte(r.prefix()))
	if !ok {
		return nil
	}
	return withMember(m.line, "id", own)
}

// serve forwards the lines of one backend until it ends, and reports whether there were any.
func (r *relay) serve(ctx context.Context, backend Backend, hostGone <-chan struct{}) (answered bool, err error) {
	defer context.AfterFunc(ctx, func() { _ = backend.Close() })() // it may be closed twice
	lines := bufio.NewReaderSize(backend, 64<<10)
	if err := r.greet(backend, lines); err != nil {
		return false, err
	}
	r.mu.Lock()
	r.backend = backend
	close(r.moved)
	r.moved = make(chan struct{})
	r.mu.Unlock()
	select {
	case <-hostGone: // between two backends
		_ = backend.CloseWrite()
	default:
	}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return answered, err
		}
		answered = true
		r.write(r.toHost(line))
	}
}

// greet repeats the host's initialize to a later backend. It discards the answer if the host
// already has one.
func (r *relay) greet(backend Backend, lines *bufio.Reader) error {
	r.mu.Lock()
	greeting, greeted, initialized, id := r.greeting, r.greeted, r.initialized, r.prefix()+"greeting"
	first := r.generation == 0
	r.mu.Unlock()
	if first || greeting == nil {
		return nil
	}
	if !greeted { // the answer is for the host
		_, err := backend.Write(greeting.line)
		return err
	}
	name, _ := json.Marshal(id) // a string always encodes
	if _, err := backend.Write(withMember(greeting.line, "id", name)); err != nil {
		return err
	}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		if got := messagesOf(line); len(got) == 1 && got[0].id() == string(name) {
			break
		}
		r.write(r.toHost(line))
	}
	if len(initialized) == 0 {
		return nil
	}
	_, err := backend.Write(initialized)
	return err
}

// toHost records the answers in a line of the backend, and returns the line for the host.
func (r *relay) toHost(line []byte) []byte {
	messages := messagesOf(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		switch {
		case m.isResponse():
			delete(r.open, m.id())
			if r.greeting != nil && m.id() == r.greeting.id() {
				r.greeted = true
			}
		case r.generation == 0 || m.line == nil:
		case m.isRequest():
			name, _ := json.Marshal(r.prefix() + m.id()) // a string always encodes
			return withMember(line, "id", name)
		case m.Method == "notifications/cancelled":
			return r.cancelledLocked(m, line)
		}
	}
	return line
}

// cancelledLocked renames the request that a backend cancels.
func (r *relay) cancelledLocked(m message, line []byte) []byte {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	if strictjson.UnmarshalOpen(m.Params, &params) != nil || len(params.ID) == 0 {
		return line
	}
	name, _ := json.Marshal(r.prefix() + string(params.ID)) // a string always encodes
	renamed := withMember(m.Params, "requestId", name)
	return withMember(line, "params", bytes.TrimSpace(renamed))
}

// leave answers the open requests of a backend that has ended.
func (r *relay) leave() {
	r.mu.Lock()
	r.backend = nil
	r.generation++
	var open []string
	for id := range r.open {
		if r.greeting == nil || r.greeted || id != r.greeting.id() {
			open = append(open, id)
			delete(r.open, id)
		}
	}
	r.mu.Unlock()
	for _, id := range open {
		r.write(fmt.Appendf(
			nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q,"data":{"retryable":true}}}`+"\n", id,
			endedText))
	}
}

// endedText is the error of a request whose daemon has ended.
const endedText = "the Airlock daemon ended while it worked on this: send it again. What a program did through tools " +
	"before is done"

// write writes one line to the host. It ignores errors: if the host is gone, reading from it fails.
func (r *relay) write(line []byte) {
	if line == nil {
		return
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	_, _ = r.out.Write(line)
}
