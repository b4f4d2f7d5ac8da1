package upstream_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// restartable is an HTTP server at one address that can be ended and started
// anew; a new one knows nothing of the former.
type restartable struct {
	t       testing.TB
	address string
	handler func() http.Handler
	server  *http.Server
	done    chan struct{}
}

func newRestartable(t testing.TB, handler func() http.Handler) *restartable {
	t.Helper()
	r := &restartable{t: t, address: testenv.ReservedAddress(t), handler: handler}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *restartable) start() {
	r.t.Helper()
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server, r.done = &http.Server{Handler: r.handler()}, make(chan struct{})
	go func(server *http.Server, done chan struct{}) {
		server.Serve(listener)
		close(done)
	}(r.server, r.done)
}

// stop ends the server and every connection to it.
func (r *restartable) stop() {
	r.server.Close()
	<-r.done
}

// The next call after a restart works, and none is carried out twice.
func TestHTTPServerThatWasRestarted(t *testing.T) {
	var calls atomic.Int32
	sdk := func(opts *mcp.StreamableHTTPOptions) func() http.Handler {
		return func() http.Handler {
			server := sdkServer()
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
					if method == "tools/call" {
						calls.Add(1)
					}
					return next(ctx, method, request)
				}
			})
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts)
		}
	}
	// badRequest answers as older SDKs do for a session that they do not know.
	badRequest := func() http.Handler {
		inner := sdk(&mcp.StreamableHTTPOptions{JSONResponse: true})()
		known := map[string]bool{}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if id := r.Header.Get("Mcp-Session-Id"); id != "" && !known[id] {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				w.Write([]byte(`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID ` +
					`provided"},"id":null}`))
				return
			}
			inner.ServeHTTP(w, r)
			if id := w.Header().Get("Mcp-Session-Id"); id != "" {
				known[id] = true
			}
		})
	}
	tests := []struct {
		name    string
		handler func() http.Handler
	}{
		{"sessions", sdk(nil)},
		{"sessions, JSON answers", sdk(&mcp.StreamableHTTPOptions{JSONResponse: true})},
		{"stateless", sdk(&mcp.StreamableHTTPOptions{Stateless: true})},
		{"HTTP 400 in place of 404", badRequest},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newRestartable(t, test.handler)
			set := connect(t, nil, upstream.Config{ID: "remote", URL: "http://" + server.address + "/mcp"})
			call := func() error {
				_, err := set.Call(t.Context(), "remote", "echo", nil)
				return err
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				server.stop()
				for range 3 { // while it is down, a call returns a retryable error
					var failed *upstream.CallError
					if err := call(); !errors.As(err, &failed) || !failed.Retryable {
						t.Fatalf("a call of a server that is down: got %v, want a retryable error", err)
					}
				}
				server.start()
				before := calls.Load()
				if err := call(); err != nil {
					t.Fatalf("the first call after the restart: %v", err)
				}
				if got := calls.Load() - before; got != 1 {
					t.Errorf("got the tool called %d times for one call", got)
				}
				server.stop()
				server.start()
				if err := call(); err != nil {
					t.Fatalf("the first call after an unnoticed restart: %v", err)
				}
			}
		})
	}
}
