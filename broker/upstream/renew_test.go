package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// impatient is a proxy that can end the streams of notifications, as proxies do with idle connections. Everything else
// goes on.
type impatient struct {
	server http.Handler

	mu   sync.Mutex
	open []context.CancelFunc
}

// ServeHTTP passes a request on.
func (p *impatient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(`"subscriptions/listen"`)) {
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		p.mu.Lock()
		p.open = append(p.open, cut)
		p.mu.Unlock()
		r = r.WithContext(ctx)
	}
	p.server.ServeHTTP(w, r)
}

func (p *impatient) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cut := range p.open {
		cut()
	}
	p.open = nil
}

// When a proxy ends a stream of notifications, or the server is restarted, a later change of a resource or of a list is
// heard without a call in between, and a call that is under way goes on.
func TestNotificationsAreHeardAgain(t *testing.T) {
	held, arrived := make(chan struct{}), make(chan struct{}, 1)
	var server *mcp.Server
	handler := func() http.Handler {
		made := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		})
		made.AddResource(&mcp.Resource{URI: "doc://guide", Name: "guide"}, nil)
		made.AddTool(&mcp.Tool{Name: "slow", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				arrived <- struct{}{}
				select {
				case <-held:
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
		server = made
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return made },
			&mcp.StreamableHTTPOptions{Stateless: true})
	}
	proxy := &impatient{server: handler()}
	web := newRestartable(t, func() http.Handler { return proxy })
	updated, changed := make(chan string, 1000), make(chan string, 1000)
	set := connect(t, &upstream.Options{OnUpdated: func(_, uri string) { updated <- uri },
		OnChange: func(id string) { changed <- id }}, upstream.Config{ID: "remote", URL: "http://" + web.address})
	if _, err := set.Call(t.Context(), "remote", catalog.UseName(catalog.UseSubscribe,
		catalog.FeatureName(catalog.KindResource, "doc://guide")), json.RawMessage("{}")); err != nil {
		t.Fatal(err)
	}
	heard := func() {
		t.Helper()
		testenv.Receive(t, "a resource that may have changed", updated) // the server is subscribed to again
		err := server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "doc://guide"})
		if err != nil {
			t.Fatal(err)
		}
		testenv.Receive(t, "an update", updated)
		addTool(server, "new")
		testenv.Receive(t, "a changed list", changed)
	}
	answer := make(chan error, 1)
	go func() {
		result, err := set.Call(t.Context(), "remote", "slow", nil)
		if err == nil && text(t, result) != "done" {
			t.Errorf("the call in progress: got %s", result)
		}
		answer <- err
	}()
	testenv.Receive(t, "the call at the server", arrived)
	proxy.cut()
	heard()
	close(held)
	if err := testenv.Receive(t, "the end of the call", answer); err != nil {
		t.Errorf("the call in progress: %v", err)
	}
	web.stop()
	proxy = &impatient{server: handler()}
	web.start()
	testenv.Receive(t, "the list of the new server", changed)
	heard()
}
