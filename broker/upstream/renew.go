package upstream

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// streams are the requests of one connection in whose answers notifications arrive (MCP 2026-07-28, Subscriptions).
type streams struct {
	cut  chan struct{} // closed when the server, or something before it, has ended one
	once sync.Once     // closes cut

	mu   sync.Mutex
	open map[jsonrpc.ID]bool
}

func newStreams() *streams { return &streams{cut: make(chan struct{}), open: map[jsonrpc.ID]bool{}} }

// begin notes a stream whose request goes out.
func (s *streams) begin(id jsonrpc.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = true
}

// end notes the end of an answer over HTTP. cancelled is closed if Airlock has ended it.
func (s *streams) end(id jsonrpc.ID, cancelled <-chan struct{}) {
	s.mu.Lock()
	was := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if !was {
		return
	}
	select {
	case <-cancelled:
	default:
		s.once.Do(func() { close(s.cut) })
	}
}

// longStream is how long a connection lasts whose streams do not end too often.
const longStream = time.Minute

// renew connects again when a stream of notifications has ended, or a connection with subscriptions. Without this,
// later changes of lists and resources would be missed until the next call, or, as a server over HTTP can answer calls
// without the stream, for ever. Calls of the connection go on.
func (s *server) renew(session *session) {
	began := time.Now()
	select {
	case <-session.tap.streams.cut:
	case <-session.ended:
		if len(s.subscribed.all()) == 0 {
			return // the next call connects
		}
	case <-s.done:
		return
	}
	s.mu.Lock()
	if s.cuts++; time.Since(began) >= longStream {
		s.cuts = 1
	}
	wait := backoffUpTo(s.opts.Refresh, s.cuts) // when the lists would be old
	wait += time.Duration(rand.Float64() * jitter * float64(max(wait, time.Second)))
	s.mu.Unlock()
	s.opts.Logger.DebugContext(context.Background(), "the notifications of an upstream server ended",
		slog.String(telemetry.KeyServer, s.config.ID), slog.Duration("wait", wait))
	select {
	case <-time.After(wait):
	case <-s.done:
		return
	}
	session.retired.Store(true)
	s.announce()
}

// drain waits until the calls of a session have ended.
func (s *session) drain(done <-chan struct{}) {
	const poll = 100 * time.Millisecond
	for s.tap.hasCalls() {
		select {
		case <-time.After(poll):
		case <-s.ended:
			return
		case <-done:
			return
		}
	}
}

// hasCalls reports whether a call has no answer yet.
func (t *tap) hasCalls() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.waiting {
		if e.method != methodListen {
			return true
		}
	}
	return false
}
