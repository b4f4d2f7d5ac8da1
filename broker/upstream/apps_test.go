package upstream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
)

// Issue 31: the apps that a server lists or that its tools name are read with its lists and become part of their
// definitions, in both eras and from the cache. Those that cannot be read are left out with a warning.
func TestAppsAreListed(t *testing.T) {
	contents := map[string]*mcp.ResourceContents{
		"ui://listed":   {URI: "ui://listed", MIMEType: catalog.AppMIME, Text: "<p>listed"},
		"ui://unlisted": {URI: "ui://unlisted", MIMEType: catalog.AppMIME, Text: "<p>unlisted"},
		"ui://link":     {URI: "ui://link", MIMEType: "text/uri-list", Text: "https://evil.example"},
		"ui://giant":    {URI: "ui://giant", MIMEType: catalog.AppMIME, Text: strings.Repeat("x", 17<<20)},
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "apps", Version: "1"}, nil)
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		one, known := contents[req.Params.URI]
		if !known {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{one}}, nil
	}
	for _, uri := range []string{"ui://listed", "ui://link", "ui://giant", "file:///other"} {
		server.AddResource(&mcp.Resource{URI: uri, Name: uri}, read)
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "ui://{name}", Name: "any"}, read)
	for name, meta := range map[string]any{"listed": map[string]any{"resourceUri": "ui://listed"},
		"unlisted": map[string]any{"resourceUri": "ui://unlisted", "visibility": []string{"app"}},
		"missing":  map[string]any{"resourceUri": "ui://missing"}, "plain": nil} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`),
			Meta: mcp.Meta{"ui": meta}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()
	cache := t.TempDir()
	for _, attempt := range []string{"connected", "cached"} {
		set, err := upstream.New([]upstream.Config{{ID: "apps", URL: web.URL}}, &upstream.Options{CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		if attempt == "connected" {
			set.Connect(t.Context())
			web.CloseClientConnections() // one waits for notifications
			web.Close()
		} else {
			set.Start(t.Context())
		}
		known := set.Servers()[0]
		set.Close()
		found := map[string]catalog.App{}
		for _, f := range known.Features {
			if f.Kind == catalog.KindResource || f.Kind == catalog.KindTool {
				found[f.Name] = f.App
			}
		}
		if len(known.Tools) != 3 || len(found) != 4 {
			t.Fatalf("%s: got %d tools and %+v", attempt, len(known.Tools), found)
		}
		if _, hidden := found["unlisted"]; !hidden {
			t.Errorf("%s: the tool for apps is not among the features", attempt)
		}
		if a, b := found["resource:ui://listed"], found["resource:ui://unlisted"]; a.Bytes != 9 || a.Unlisted ||
			b.Bytes != 11 || !b.Unlisted || a.Digest == b.Digest || found["resource:file:///other"].Digest != "" {
			t.Errorf("%s: got %+v", attempt, found)
		}
		for _, want := range []string{"ui://link", "ui://giant", "ui://missing"} {
			if !slices.ContainsFunc(known.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
				t.Errorf("%s: got warnings %q, want one about %s", attempt, known.Warnings, want)
			}
		}
	}
}

// A tool for apps of a server without an app that can be shown is one for code: nobody else could call it (issue 31).
func TestToolsForAppsWithoutAnApp(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "apps", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ui_get", InputSchema: json.RawMessage(`{"type":"object"}`),
		Meta: mcp.Meta{"ui": map[string]any{"resourceUri": "ui://missing", "visibility": []string{"app"}}}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()
	set, err := upstream.New([]upstream.Config{{ID: "apps", URL: web.URL}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer web.CloseClientConnections() // one waits for notifications
	defer set.Close()
	set.Connect(t.Context())
	known := set.Servers()[0]
	if len(known.Tools) != 1 || known.Tools[0].UI.OnlyApps {
		t.Errorf("got the tools %+v", known.Tools)
	}
}
