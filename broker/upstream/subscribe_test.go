package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
)

// In both eras, a server has agreed when a subscription succeeds, so later updates arrive, and its refusal is an error.
func TestASubscriptionIsAgreedOn(t *testing.T) {
	for era, opts := range map[string]mcp.StreamableHTTPOptions{
		"2025-11-25": {}, "2026-07-28": {Stateless: true},
	} {
		t.Run(era, func(t *testing.T) {
			server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{
				SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
					if strings.HasPrefix(r.Params.URI, "doc://secret") {
						return errors.New("not for everybody")
					}
					return nil
				},
				UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
			})
			for _, uri := range []string{"doc://guide", "doc://secret"} {
				server.AddResource(&mcp.Resource{URI: uri, Name: uri}, nil)
			}
			updated := make(chan string, 1000)
			set := remote(t, &upstream.Options{OnUpdated: func(_, uri string) { updated <- uri }},
				mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &opts), nil)
			subscribe := func(uri string) error {
				_, err := set.Call(t.Context(), "remote", catalog.UseName(catalog.UseSubscribe,
					catalog.FeatureName(catalog.KindResource, uri)), json.RawMessage("{}"))
				return err
			}
			for range 20 { // the update comes at once
				if err := subscribe("doc://guide"); err != nil {
					t.Fatal(err)
				}
				err := server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "doc://guide"})
				if err != nil {
					t.Fatal(err)
				}
				if got := <-updated; got != "doc://guide" {
					t.Fatalf("got an update of %s", got)
				}
				if err := set.Unsubscribe(t.Context(), "remote", "doc://guide"); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second is not taken for one that is open
				refused, ok := errors.AsType[*upstream.CallError](subscribe("doc://secret"))
				if !ok || refused.Type != upstream.ToolError ||
					!strings.Contains(refused.Message, "not for everybody") {
					t.Errorf("got %v, want the server's refusal", refused)
				}
			}
		})
	}
}
