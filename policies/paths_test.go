package policies_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// Issue 27: like "/srv/docs/*" permitted /srv/docs/../../etc/cron.d/x. context.paths has normalised paths, and a text
// that a server could read as another path matches nothing.
func TestNormalisedPaths(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(
		`permit (principal, action, resource) when { context.paths has path && context.paths.path like "/srv/docs/*" ` +
			`};`)})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/srv/docs/a.md": true, "/srv/docs/sub/../a.md": true, "/srv//docs/./a.md": true, `\srv\docs\a.md`: true,
		"file:///srv/docs/a.md": true, "/srv/docs/a%20b.md": true, "/../srv/docs/a.md": true,
		"/srv/docs/../../etc/cron.d/x": false, "/srv/docs/..": false, "/srv/docs/": false,
		`/srv/docs/..\..\etc\passwd`:         false,
		"/srv/docs/%2e%2e/%2e%2e/etc/passwd": false, "/srv/docs/..%2f..%2fetc": false, "/srv/docs/%252e%252e/x": false,
		"/srv/docs/a\x00/../../b": false, "file:///srv/docs/../../etc/passwd": false,
		"file:///srv/docs/%2e%2e/x": false,
		"srv/docs/a":                false, "../srv/docs/a": false, "/srv/docsx/a": false, "": false,
		"/srv/docs/" + strings.Repeat("a/", 4096): false,
	} {
		d := engine.Decide(policies.Request{Principal: "ann", Tool: catalog.Tool{ServerID: "files", Name: "read_file"},
			Input: map[string]any{"path": path}})
		if d.Allow != want {
			t.Errorf("%q: allowed %t, want %t", path, d.Allow, want)
		}
	}
	// in a list and in a record
	d := engine.Decide(policies.Request{Principal: "ann", Tool: catalog.Tool{ServerID: "files", Name: "read_file"},
		Input: map[string]any{"path": []any{"/srv/docs/a"}}})
	if d.Allow {
		t.Error("a list matched a pattern")
	}
}

// Issue 27: a tool in servers.X.allow that claims to be destructive still asks, and the explanation names the cure. It
// names none with rules that do not allow the call with a lower risk either.
func TestExplanationNamesTheCure(t *testing.T) {
	const cure = "servers.files.tools: {write_file: {risk: write}}"
	for name, tc := range map[string]struct {
		file policies.File
		want bool
	}{
		"the shipped policy": {policies.Default(), true},
		"another policy": {policies.File{Name: "own.cedar", Source: []byte(
			`@approve("owner") permit (principal, action, resource) when { resource.risk == "destructive" };`)}, false},
	} {
		engine, err := policies.Load(tc.file)
		if err != nil {
			t.Fatal(err)
		}
		destroys := true
		req := policies.Request{Principal: "ann", Settings: policies.Settings{Allowed: true},
			Tool: catalog.Tool{ServerID: "files", Name: "write_file",
				Annotations: catalog.Annotations{DestructiveHint: &destroys}}}
		d := engine.Decide(req)
		var text strings.Builder
		if err := policies.Explain(&text, req, d, engine.HowToAllow(req, d)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "asks owner") || strings.Contains(text.String(), cure) != tc.want {
			t.Errorf("%s: got %s, want %q in it: %t", name, text.String(), cure, tc.want)
		}
	}
}
