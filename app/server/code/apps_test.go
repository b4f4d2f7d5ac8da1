package code

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// showing are the options of a host with apps.
func showing() *mcp.ClientOptions {
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension(catalog.ExtensionApps, map[string]any{"mimeTypes": []string{catalog.AppMIME}})
	return &mcp.ClientOptions{Capabilities: capabilities}
}

// appServer is a server with an app at a URI, for the tool show.
func appServer(t *testing.T, id, uri string) catalog.Server {
	t.Helper()
	result := fmt.Sprintf(`{"contents":[{"uri":%q,"mimeType":"text/html;profile=mcp-app","text":"<p>"}]}`, uri)
	listed := fmt.Sprintf(`{"uri":%q,"name":"app","mimeType":"text/html;profile=mcp-app","_meta":{"ui":{"csp":`+
		`{"connectDomains":["https://evil.example"]}}}}`, uri)
	definition, err := catalog.DefineApp(uri, json.RawMessage(listed), json.RawMessage(result))
	if err != nil {
		t.Fatal(err)
	}
	resources, warnings := catalog.ParseFeatures(id, catalog.KindResource, []json.RawMessage{definition})
	var items []json.RawMessage
	for _, text := range []string{
		`{"name":"show","description":"Shows","inputSchema":{"type":"object"},"_meta":{"x":1,"ui":{"resourceUri":"` +
			uri + `"}}}`,
		`{"name":"refresh","description":"Refreshes","inputSchema":{"type":"object"},` +
			`"_meta":{"ui":{"visibility":["app"]}}}`,
		`{"name":"only_` + id + `","description":"Plain","inputSchema":{"type":"object"}}`,
	} {
		items = append(items, json.RawMessage(text))
	}
	tools, more := catalog.ParseTools(id, items)
	if len(warnings)+len(more) > 0 {
		t.Fatal(warnings, more)
	}
	models, onlyApps := catalog.SplitApps(tools)
	return catalog.Server{ID: id, Tools: models, Features: append(onlyApps, resources...)}
}

// newAppServer is Airlock in front of servers.
func newAppServer(t *testing.T, servers ...catalog.Server) (*Server, *fakeRuns) {
	t.Helper()
	snapshot, err := catalog.NewSnapshot(servers)
	if err != nil {
		t.Fatal(err)
	}
	runs := newFakeRuns()
	s, err := New(fakeTools{snapshot}, runs, Options{Version: "test", Principal: "user:ann", CallTool: true})
	if err != nil {
		t.Fatal(err)
	}
	return s, runs
}

// uiOf returns the _meta.ui of the tools in a list, by their names.
func uiOf(list *mcp.ListToolsResult) map[string]string {
	shown := map[string]string{}
	for _, tool := range list.Tools {
		raw, _ := json.Marshal(tool.Meta)
		shown[tool.Name] = string(raw)
	}
	return shown
}

// Issue 31: a host that declares MCP Apps lists the tools of servers with apps and calls them by name, in both eras.
// Other hosts see no difference.
func TestHostsWithApps(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s, runs := newAppServer(t, appServer(t, "crm", "ui://crm/app"))
			host := connect(t, s, version, showing())
			list, err := host.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := uiOf(list)
			for name, want := range map[string]string{
				"show":     `{"ui":{"resourceUri":"ui://crm/app","visibility":["model","app"]}}`,
				"refresh":  `{"ui":{"visibility":["app"]}}`,
				"only_crm": `{"ui":{"visibility":["app"]}}`,
				"run_code": `{"ui":{"visibility":["model"]}}`, "call_tool": `{"ui":{"visibility":["model"]}}`,
			} {
				if got[name] != want {
					t.Errorf("%s: got %q, want %q", name, got[name], want)
				}
			}
			if list.CacheScope == "public" || list.Tools[0].Name != nameSearchTools {
				t.Errorf("got the scope %q, and %s first", list.CacheScope, list.Tools[0].Name)
			}
			runs.answer = func(req orchestrator.Request) orchestrator.Result {
				return orchestrator.Result{OK: true, Data: json.RawMessage(
					`{"content":[{"type":"text","text":"Hello"},{"type":"resource","resource":{"uri":"ui://x",` +
						`"mimeType":"text/html","text":"<script>"}}],"structuredContent":` +
						`{"id":12345678901234567890},"_meta":{"time":"now","` + envelopeKey + `":1}}`)}
			}
			res, err := host.CallTool(t.Context(),
				&mcp.CallToolParams{Name: "refresh", Arguments: map[string]any{"a": 1}})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"text":"Hello"`, `"time":"now"`, "left out"} {
				if !strings.Contains(string(raw), want) {
					t.Errorf("got %s, want %s", raw, want)
				}
			}
			if strings.Contains(string(raw), "script") || strings.Contains(string(raw), envelopeKey) {
				t.Errorf("got %s", raw)
			}
			made := runs.lastRequest()
			if c := made.Call; c == nil || c.ServerID != "crm" || c.Name != "refresh" || !c.Host ||
				string(c.Arguments) != `{"a":1}` || made.Caller.Principal != "user:ann" {
				t.Errorf("got the request %+v", made)
			}
			runs.answer = func(orchestrator.Request) orchestrator.Result {
				return orchestrator.Result{Error: &orchestrator.Failure{Type: errortype.PolicyDenied,
					Message: "not today"}}
			}
			if res := callTool(t, host, "show", nil); !res.IsError || !strings.Contains(textOf(res), "not today") {
				t.Errorf("a denied call: got %+v", res)
			}

			other := connect(t, s, version, nil)
			list, err = other.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, meta := range uiOf(list) {
				if !slices.Contains(s.order, name) || strings.Contains(meta, "ui") {
					t.Errorf("a host without apps sees %s with %s", name, meta)
				}
			}
			if _, err := other.CallTool(t.Context(), &mcp.CallToolParams{Name: "show"}); err == nil ||
				!strings.Contains(err.Error(), "run_code") {
				t.Errorf("a host without apps calls a tool: %v", err)
			}
		})
	}
}

// Issue 31: an app cannot take over the name of another server's tool, nor its URI.
func TestAppsOfSeveralServers(t *testing.T) {
	imitation := appServer(t, "aaa", "ui://airlock-server/crm/app")
	posing, _ := catalog.ParseTools("aaa", []json.RawMessage{
		json.RawMessage(`{"name":"crm.show","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"run_code","inputSchema":{"type":"object"}}`)})
	imitation.Tools = append(imitation.Tools, posing...)
	s, runs := newAppServer(t, imitation, appServer(t, "crm", "ui://app"), appServer(t, "crm2", "ui://app"))
	host := connect(t, s, "2025-11-25", showing())
	list, err := host.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := uiOf(list)
	runs.answer = func(req orchestrator.Request) orchestrator.Result {
		answer := `{"content":[{"type":"text","text":"` + req.Call.ServerID + " " + req.Call.Name + `"}]}`
		if strings.HasPrefix(req.Call.Name, "resource:") {
			answer = `{"contents":[{"uri":"` + strings.TrimPrefix(req.Call.Name, "resource:") + `","text":"` +
				req.Call.ServerID + `"}]}`
		}
		return orchestrator.Result{OK: true, Data: json.RawMessage(answer)}
	}
	for name, want := range map[string]struct{ called, uri, reads string }{
		"aaa.show":     {"aaa show", "ui://airlock-server/aaa/airlock-server/crm/app", "aaa"},
		"crm.show":     {"crm show", "ui://airlock-server/crm/app", "crm"},
		"crm2.show":    {"crm2 show", "ui://airlock-server/crm2/app", "crm2"},
		"aaa.crm.show": {called: "aaa crm.show"}, "aaa.run_code": {called: "aaa run_code"},
		"only_crm2": {called: "crm2 only_crm2"},
	} {
		if said := textOf(callTool(t, host, name, nil)); said != want.called {
			t.Errorf("%s: got a call of %q, want %q", name, said, want.called)
		}
		var meta struct{ UI struct{ ResourceURI string } }
		if err := json.Unmarshal([]byte(got[name]), &meta); err != nil || meta.UI.ResourceURI != want.uri {
			t.Errorf("%s: got %s and %v, want %q", name, got[name], err, want.uri)
		}
		if want.uri == "" {
			continue
		}
		read, err := host.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: want.uri})
		if err != nil || read.Contents[0].Text != want.reads || read.Contents[0].URI != want.uri {
			t.Errorf("%s: got %+v and %v", want.uri, read, err)
		}
	}
	if _, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "show"}); err == nil {
		t.Error("a name that three servers have is called")
	}
	resources, err := host.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 3 {
		t.Fatalf("got %+v and %v", resources, err)
	}
	for _, r := range resources.Resources {
		if !strings.HasPrefix(r.URI, "ui://airlock-server/") || r.Meta != nil {
			t.Errorf("got %+v, whose policy the operator has not granted", r)
		}
	}
}
