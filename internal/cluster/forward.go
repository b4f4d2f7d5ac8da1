package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// clientHeader has the address of the client in a forwarded request. Only requests of other nodes are read for it.
const clientHeader = "Airlock-Client-Address"

type forwardingKey struct{}

// forwarding is what Forward has to know about a request.
type forwarding struct {
	authorization []string // as the client has sent it: faces replace it
	forwarded     bool     // another node has forwarded the request
}

// FromClients returns the handler of requests of clients. It keeps what Forward needs.
func (n *Node) FromClients(next http.Handler) http.Handler {
	if n == nil || n.link == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		about := forwarding{authorization: r.Header.Values("Authorization")}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwardingKey{}, about)))
	})
}

// fromNodes returns the handler of requests that other nodes forward, and of their own questions. It refuses those of
// processes that have no lease any more.
func (n *Node) fromNodes(next, questions http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !n.accepts(r.Context(), pinOf(r.TLS.PeerCertificates[0])) {
			http.Error(w, errForeignNode.Error(), http.StatusForbidden)
			return
		}
		if r.Header.Get(clientHeader) == "" {
			questions.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), forwardingKey{}, forwarding{forwarded: true}))
		r.RemoteAddr = r.Header.Get(clientHeader)
		r.Header.Del(clientHeader)
		next.ServeHTTP(w, r)
	})
}

// accepts reports whether a pin is that of a node with a lease. This node must have one, too: it does not know the
// others otherwise.
func (n *Node) accepts(ctx context.Context, pin string) bool {
	if n.Check() != nil {
		return false
	}
	if _, known := n.members.pinned(pin); known {
		return true
	}
	n.readMembers(ctx, time.Now().Add(-rereadAfter)) // the node may have joined a moment ago
	_, known := n.members.pinned(pin)
	return known
}

// Serve serves requests that other nodes forward until the server is shut down. answer answers the questions of other
// nodes; nil: none are. Serve returns http.ErrServerClosed at once if other nodes do not reach this one.
func (n *Node) Serve(server *http.Server, answer func(ctx context.Context, question []byte) ([]byte, error)) error {
	if n == nil || n.link == nil {
		return http.ErrServerClosed
	}
	server.Handler = n.fromNodes(server.Handler, answering(answer))
	server.HTTP2 = connectionLimits()
	listener := newUnproved(n.link.listener)
	server.TLSConfig = listener.config(n.link.config(func(pin string) bool {
		return n.accepts(context.Background(), pin)
	}))
	return server.ServeTLS(listener, "", "")
}

// noteUnreached logs that a node does not answer, once in silentAfter: requests of clients are the cause.
func (n *Node) noteUnreached(ctx context.Context, to member, err error) {
	now, last := time.Now().Unix(), n.noted.Load()
	if now-last >= seconds(silentAfter) && n.noted.CompareAndSwap(last, now) {
		n.logger.WarnContext(ctx, "a node of the cluster does not answer", slog.String("node", to.name),
			slog.Any(telemetry.KeyError, err))
	}
}

// Forward passes a request to the node that has made an ID, and the answer of that node to w. The request is processed
// at most once. It ends with its context, and a reader that is slow holds back the writer. The other node authenticates
// the caller again: it gets the headers of the client.
//
// Forward returns false if this node must answer: the ID is its own or that of no node, or the request was forwarded
// already. If the node does not answer, Forward calls failed. gone is true if it has ended or is ending, or has not
// renewed its lease for a while.
func (n *Node) Forward(w http.ResponseWriter, r *http.Request, id string, failed func(gone bool)) bool {
	about, known := r.Context().Value(forwardingKey{}).(forwarding)
	if !known || about.forwarded {
		return false
	}
	to, found := n.owner(r.Context(), id)
	switch {
	case !found || to.name == n.name || to.address == "" && to.alive:
		return false
	case !to.alive:
		failed(true)
		return true
	}
	n.pass(w, r, about, to, func(err error) {
		failed(errors.Is(err, errNotConnected) && n.hasLeft(r.Context(), to))
	})
	return true
}

// hasLeft reports whether a node has ended or is ending, or another process has its name, as the database knows it now.
func (n *Node) hasLeft(ctx context.Context, node member) bool {
	n.readMembers(ctx, time.Now())
	now, _ := n.members.named(node.name)
	return !now.alive || now.leaving || now.pin != node.pin
}

// maxRepeated is the largest body in bytes that is kept until the request is answered.
const maxRepeated = 64 << 10

// repeatable has the transport send a request again if the other node says that it has not processed it, because its
// connection is ending (RFC 9113, section 6.8). A request with a large body fails then.
func repeatable(r *http.Request) {
	if r.ContentLength <= 0 || r.ContentLength > maxRepeated || r.GetBody != nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // the next read fails again
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		return
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
}

// pass passes a request to a node, and its answer to w. If the node does not answer, it calls failed, unless the client
// has disconnected.
func (n *Node) pass(w http.ResponseWriter, r *http.Request, about forwarding, to member, failed func(error)) {
	node := telemetry.AttrNode.String(to.name)
	ctx, span := telemetry.Start(telemetry.Within(r.Context(), r.Header.Get), telemetry.SpanForward, node)
	record := func(errorType string) { span.EndTimed(ctx, telemetry.Forward, errorType, node) }
	// The other node may answer before its request was read to the end. Without this, the server closes the body then,
	// and the answer is cut. Over HTTP/2 it is so anyway.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		n.logger.DebugContext(ctx, "a request is not read while it is answered", slog.Any(telemetry.KeyError, err))
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "https", Host: to.pin})
			p.Out.Host = p.In.Host
			p.Out.Header.Del("Authorization")
			for _, value := range about.authorization {
				p.Out.Header.Add("Authorization", value)
			}
			repeatable(p.Out)
			p.Out.Header.Set(clientHeader, r.RemoteAddr)
			telemetry.Pass(ctx, p.Out.Header.Set)
		},
		Transport: n.link.transport, FlushInterval: -1,
		ModifyResponse: func(*http.Response) error {
			record("")
			connection, ends := w.Header()["Connection"] // of the client, see app/daemon
			clear(w.Header())                            // the other node has set them
			if ends {
				w.Header()["Connection"] = connection
			}
			return nil
		},
		ErrorLog: slog.NewLogLogger(n.logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil { // the client has disconnected
				span.End("")
				return
			}
			record("unreached")
			n.noteUnreached(r.Context(), to, err)
			failed(err)
		},
	}
	proxy.ServeHTTP(w, r)
}
