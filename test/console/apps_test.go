package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/browser"
)

// inFrames is how many frames an app is in: that of the sandbox, and its own within.
const inFrames = 2

// appsDirectory returns the directory of the host and the app, with their packages from npm.
func appsDirectory(t *testing.T) string {
	t.Helper()
	if !testenv.WantsSandboxes() {
		t.Skip("drives a real browser: run `make test`, or set AIRLOCK_TEST_SANDBOX=1")
	}
	directory := filepath.Join(testenv.RepoRoot(t), "test", "apps")
	if _, err := os.Stat(filepath.Join(directory, "node_modules", "@mcp-ui", "client")); err != nil {
		t.Fatalf("%v (run `make browser` first)", err)
	}
	return directory
}

// bundle returns a program of a directory with its libraries.
func bundle(t *testing.T, directory, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(directory, "node_modules", ".bin", "esbuild"),
		filepath.Join(directory, name), "--bundle", "--format=esm", "--minify",
		`--define:process.env.NODE_ENV="production"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// policy returns the policy of a host for the origins that an app declares (MCP Apps, Content Security Policy
// Enforcement).
func policy(declared string) string {
	var csp struct{ ConnectDomains, ResourceDomains []string }
	if declared == "" || json.Unmarshal([]byte(declared), &csp) != nil {
		return "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
			"connect-src 'none'"
	}
	static := strings.Join(csp.ResourceDomains, " ")
	return fmt.Sprintf("default-src 'none'; script-src 'self' 'unsafe-inline' %s; "+
		"style-src 'self' 'unsafe-inline' %s; connect-src 'self' %s; frame-src 'self'; object-src 'none'",
		static, static,
		strings.Join(csp.ConnectDomains, " "))
}

// startAppsHost serves the page of a host, which reaches Airlock with a token, and returns its address.
func startAppsHost(t *testing.T, a *airlock, token string) string {
	t.Helper()
	directory := appsDirectory(t)
	script := bundle(t, directory, "host.mjs")
	sandbox := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy(r.FormValue("csp")))
		http.ServeFile(w, r, filepath.Join(directory, "sandbox.html"))
	}))
	t.Cleanup(sandbox.Close)
	address, err := url.Parse(a.address)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(address)
		r.Out.Header.Del("Origin")
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		message, err := io.ReadAll(r.Body) // whole messages are passed on, as a host's own client sends them
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(message))
		proxy.ServeHTTP(w, r)
	})
	mux.HandleFunc("/host.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, script)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(directory, "host.html"))
	})
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	return host.URL + "/?sandbox=" + url.QueryEscape(sandbox.URL) + "&tool="
}

// startSite serves a text to any page, and counts the requests.
func startSite(t *testing.T) (address string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprint(w, "the site's answer")
	}))
	t.Cleanup(site.Close)
	return site.URL, requests
}

// startAppNotes serves notes with an app that asks for two sites. html is its page, which may change.
func startAppNotes(t *testing.T, html *atomic.Pointer[string], sites ...string) string {
	t.Helper()
	const uri = "ui://notes/app.html"
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	saved := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is saved"}}}
	add := func(name string, reads bool, meta map[string]any, result *mcp.CallToolResult) {
		server.AddTool(&mcp.Tool{Name: name, Description: "Works on notes.",
			InputSchema: json.RawMessage(`{"type":"object"}`), Meta: mcp.Meta{"ui": meta},
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
	}
	add("show_notes", true, map[string]any{"resourceUri": uri}, &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: "one note"}},
		StructuredContent: map[string]any{"note": "buy milk"}})
	add("save_note", false, map[string]any{"visibility": []string{"app"}}, saved)
	add("erase_notes", false, map[string]any{"visibility": []string{"model"}}, saved)
	server.AddResource(&mcp.Resource{URI: uri, Name: "notes", MIMEType: catalog.AppMIME},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			csp := map[string]any{"connectDomains": sites}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: catalog.AppMIME,
				Text: *html.Load(), Meta: mcp.Meta{"ui": map[string]any{"csp": csp}}}}}, nil
		})
	return startServer(t, server, "")
}

// Issue 31: a real host shows the apps of servers behind Airlock. A call of an app waits for a person, who answers it
// in the console. An app reaches the site that the operator grants and no other, and cannot run code.
func TestApps(t *testing.T) {
	directory := appsDirectory(t)
	granted, reached := startSite(t)
	withheld, kept := startSite(t)
	page := fmt.Sprintf(`<!doctype html><body><script>globalThis.addresses = `+
		`{"Fetch granted": %q, "Fetch withheld": %q}</script><script type="module">%s</script></body>`,
		granted, withheld, bundle(t, directory, "app.mjs"))
	var html atomic.Pointer[string]
	html.Store(&page)
	a := startAirlock(t, fmt.Sprintf(`mcpServers:
  notes: {url: %s}
  time: {command: node, args: [%s, --stdio]}
servers:
  notes: {trustAnnotations: true, apps: {connectDomains: [%q]}}
  time: {allow: [get-time]}
`, startAppNotes(t, &html, granted, withheld), filepath.Join(directory,
		"node_modules/@modelcontextprotocol/server-basic-vanillajs/dist/index.js"), granted))
	token := a.token(t, "ann", "admin")
	host := startAppsHost(t, a, a.token(t, "ann", "run"))

	b := browser.Open(t)
	b.Expected = []string{"409 (Conflict)"} // the SDK resumes the stream of an error, although it has arrived
	b.Goto(t, host+"show_notes")
	b.Sees(t, "for the model: search_tools get_tool_definition run_code get_run cancel_run get-time show_notes")
	in := func(step string, options map[string]any) {
		t.Helper()
		options["frames"] = inFrames
		b.Do(t, step, options)
	}
	press := func(name, want string) {
		t.Helper()
		in("click", map[string]any{"role": "button", "name": name})
		in("sees", map[string]any{"text": want})
	}
	in("sees", map[string]any{"text": "shows buy milk"})
	press("Fetch granted", "Fetch granted: the site's answer")
	press("Fetch withheld", "Fetch withheld: failed, Failed to fetch")
	if reached.Load() != 1 || kept.Load() != 0 {
		t.Errorf("the granted site got %d requests, and the other %d", reached.Load(), kept.Load())
	}
	press("Run code", "run_code is not for apps")
	press("Erase", "unknown tool \"erase_notes\"")
	b.NoProblems(t, "Content Security Policy", "not for apps")

	in("click", map[string]any{"role": "button", "name": "Save"})
	console := browser.Open(t)
	signIn(t, console, a, token)
	console.Goto(t, a.address+"/questions")
	console.Click(t, "link", "notes/save_note")
	console.Click(t, "button", "Allow once")
	in("sees", map[string]any{"text": "Save: it is saved"})

	b.Goto(t, host+"get-time") // an example server of MCP Apps, with its own app
	in("click", map[string]any{"role": "button", "name": "Get Server Time"})
	in("sees", map[string]any{"text": "Z"})
	b.NoProblems(t)

	changed := page + "<!-- it changed -->"
	html.Store(&changed)
	b.Goto(t, host+"show_notes")
	b.Sees(t, "the app changed since it was listed")
	if diff := a.until(t, "ui://notes/app.html", "tools", "diff"); !strings.Contains(diff, "digest") {
		t.Errorf("got the difference %s", diff)
	}
	b.NoProblems(t, "the app changed")
	log := a.prints(t, "audit", "tail", "-n", "200", "--json")
	for _, want := range []string{"the app may use connectDomains " + granted,
		"the app may not use connectDomains " + withheld, `"tool_name":"save_note"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %q", want)
		}
	}
}
