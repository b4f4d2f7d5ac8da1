package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// appMIME is the type of the content of apps.
const appMIME = "text/html;profile=mcp-app"

// appNotes is a server with an app for the tool show, and the tool save for the app.
func appNotes(t *testing.T) (url string) {
	t.Helper()
	const uri = "ui://notes/app"
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	for name, meta := range map[string]map[string]any{"show": {"resourceUri": uri},
		"save": {"visibility": []string{"app"}}} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`),
			Meta: mcp.Meta{"ui": meta}, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "show"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " is done"}},
					StructuredContent: map[string]any{"by": name}, Meta: mcp.Meta{"for": "the app"}}, nil
			})
	}
	server.AddResource(&mcp.Resource{URI: uri, Name: "app", MIMEType: appMIME},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			// The replacement of a text that looks like a secret would break the program.
			csp := map[string]any{"connectDomains": []string{"https://a.example"}}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: appMIME,
				Text: `<script>password = "hunter2hunter2"; call(4111111111111111)</script>`,
				Meta: mcp.Meta{"ui": map[string]any{"csp": csp, "prefersBorder": true}}}}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// Issue 31: apps reach hosts over stdio, through a joined daemon and over HTTP, in both eras. A call of an app that
// needs approval is answered in the host.
func TestAppsReachHostsOverEveryTransport(t *testing.T) {
	testenv.OwnHome(t, "python")
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	config := fmt.Sprintf("mcpServers: {notes: {url: %q}}\nservers: {notes: {trustAnnotations: true}}\n%s",
		appNotes(t), testenv.HostIsAProxy)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	stdio := func() mcp.Transport {
		return &mcp.CommandTransport{Command: exec.Command(ownProgram(), "mcp", "--config", file)}
	}
	t.Run("stdio", func(t *testing.T) { showsAppsInBothEras(t, stdio) })
	url, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0", "--config", file)
	if code != 0 {
		t.Fatalf("serve --detach: got %d, %s", code, stderr)
	}
	defer airlock(t, "stop")
	t.Run("a joined daemon", func(t *testing.T) { showsAppsInBothEras(t, stdio) })
	token, err := testenv.AtTerminal(t, exec.Command(ownProgram(), "tokens", "create", "host", "--for", "ann",
		"--scope", "run", "--config", file)).Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("HTTP", func(t *testing.T) {
		showsAppsInBothEras(t, func() mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: strings.TrimSpace(url) + "/mcp",
				HTTPClient: testenv.Bearer(strings.TrimSpace(string(token)))}
		})
	})
}

func showsAppsInBothEras(t *testing.T, transport func() mcp.Transport) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var asked atomic.Int64
			capabilities := &mcp.ClientCapabilities{}
			capabilities.AddExtension("io.modelcontextprotocol/ui", map[string]any{"mimeTypes": []string{appMIME}})
			client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
				Capabilities: capabilities,
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					return &mcp.ElicitResult{Action: "accept",
						Content: map[string]any{"decision": "approve this call"}}, nil
				}})
			host, err := client.Connect(t.Context(), transport(), &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			list, err := host.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 7 {
				t.Fatalf("got %+v and %v, want five tools of Airlock and two of the server", list, err)
			}
			read, err := host.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ui://notes/app"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(read.Contents[0].Meta)
			if app := read.Contents[0]; err != nil || string(got) != `{"ui":{"prefersBorder":true}}` ||
				app.MIMEType != appMIME ||
				app.Text != `<script>password = "hunter2hunter2"; call(4111111111111111)</script>` {
				t.Errorf("got %+v with %s", app, got)
			}
			for _, name := range []string{"show", "save"} {
				res, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				if err != nil {
					t.Fatal(err)
				}
				if by, _ := res.StructuredContent.(map[string]any); res.IsError || by["by"] != name ||
					res.Meta["for"] != "the app" || len(res.Content) != 1 {
					t.Errorf("%s: got %+v", name, res)
				}
			}
			if asked.Load() != 1 {
				t.Errorf("the person was asked %d times, want once, for save", asked.Load())
			}
			code, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
				"language": "python", "code": "import servers.notes as notes\n" +
					"result = sorted(n for n in dir(notes) if n in ('show', 'save'))"}})
			if answer, _ := json.Marshal(code); err != nil || !strings.Contains(string(answer), `"data":["show"]`) {
				t.Errorf("code sees %s and %v, want only the tool show", answer, err)
			}
		})
	}
}
