package daemon

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/api"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/broker/iatp"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// Limits of connections and requests. A message's size is bounded by who reads it.
const (
	maxConnections = 20_000
	maxRequests    = 4_000 // at one time, open streams included; more are answered "busy"
	maxHeader      = 32 << 10
	headerTime     = 10 * time.Second // to send the header
	bodyTime       = time.Minute      // to send the body
	idleTime       = 2 * time.Minute  // between two requests of one connection
	readTime       = 30 * time.Second // to take in a part of an answer
	answerTime     = 5 * time.Second  // to take in what is left when the daemon ends
)

// writePart is how many bytes of an answer a client has readTime for.
const writePart = 64 << 10

// webServer serves all that is reached over HTTP.
func (d *Daemon) webServer() *http.Server {
	serve := d.opts.Config.Serve
	mux := http.NewServeMux()
	opts := &server.HTTPOptions{Hosts: serve.Hosts, Origins: serve.Origins, Refuse: d.refuse}
	if d.opts.Kernel {
		mux.Handle("/mcp", d.kernel.Handler(d.caller, opts))
	} else {
		mux.Handle("/mcp", d.face.Handler(d.caller, opts))
		mux.Handle(kernelPath, d.kernel.Handler(d.caller, opts))
	}
	mux.Handle("GET /.well-known/agent-keys", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.agentKeys)))
	mux.Handle("GET "+iatp.ManifestPath+"{agent}", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.agentManifest)))
	mux.Handle("/v1/", server.Guard(serve.Hosts, serve.Origins,
		api.New(api.Options{Agents: d.known, Verifications: d.opts.System.Verifications(), Identify: d.caller, Refuse: d.identify.Refuse, Logger: d.opts.Logger})))
	if d.console != nil {
		mux.Handle("/", d.console)
	}
	if d.opts.Metrics != nil {
		mux.Handle("GET /metrics", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.metrics)))
	}
	mux.HandleFunc("GET /healthz", d.alive)
	mux.HandleFunc("GET /readyz", d.ready)
	if d.identify.Issuer != nil {
		d.identify.Issuer.Describe(mux, d.faces()...)
	}
	return &http.Server{
		Handler: patient(&bounded{next: mux, room: make(chan struct{}, maxRequests), answering: d.answering}), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(d.opts.Logger.Handler(), slog.LevelDebug),
	}
}

// bounded answers requests beyond its room with "busy", at once.
type bounded struct {
	next http.Handler
	room chan struct{}

	answering *inFlight // is told of requests that are no open streams
}

// ServeHTTP answers one request. Health is always answered.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		b.next.ServeHTTP(w, r)
		return
	}
	select {
	case b.room <- struct{}{}:
		defer func() { <-b.room }()
		if r.Method != http.MethodGet {
			defer b.answering.begin()()
		}
		b.next.ServeHTTP(w, r)
	default:
		w.Header().Set("Retry-After", "1")
		problem.Write(w, http.StatusServiceUnavailable, "busy", "too many requests are being answered: send it again")
	}
}

// patient gives clients bodyTime to send a body and readTime for each part of an
// answer. The server's own time limits would end an answer that streams for long.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Body != http.NoBody {
			// An error means a connection that has no such limit; the header's time is over.
			_ = control.SetReadDeadline(time.Now().Add(bodyTime))
			r.Body = &timedBody{ReadCloser: r.Body, control: control}
		}
		next.ServeHTTP(&timedWriter{ResponseWriter: w, control: control}, r)
	})
}

// timedBody lifts the time limit when the body is read: the connection is watched
// for its end from then on.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads, and lifts the limit at the end.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// timedWriter ends the connection of a client that does not take in its answer.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes in parts, each within readTime.
func (w *timedWriter) Write(p []byte) (written int, err error) {
	for first := true; first || len(p) > 0; first = false {
		part := p[:min(len(p), writePart)]
		_ = w.control.SetWriteDeadline(time.Now().Add(readTime))
		n, err := w.ResponseWriter.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// FlushError writes out what is buffered, within readTime.
func (w *timedWriter) FlushError() error {
	_ = w.control.SetWriteDeadline(time.Now().Add(readTime))
	return w.control.Flush()
}

// Flush is FlushError for http.Flusher.
func (w *timedWriter) Flush() { _ = w.FlushError() }

// boundedListener accepts a bounded number of connections at one time; more wait.
type boundedListener struct {
	net.Listener
	room chan struct{}
	done chan struct{}
	once sync.Once
}

func newBounded(l net.Listener, n int) net.Listener {
	return &boundedListener{Listener: l, room: make(chan struct{}, n), done: make(chan struct{})}
}

// Accept waits for room and a connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &boundedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close closes the listener. Calling it twice is fine.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close makes room.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// faces are the paths of the MCP faces.
func (d *Daemon) faces() []string {
	if d.opts.Kernel {
		return []string{"/mcp"}
	}
	return []string{"/mcp", kernelPath}
}
