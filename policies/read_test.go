package policies_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// Issue 31: reading a resource is the action "read". Rules about calls do not apply to it; rules for all actions do.
func TestReads(t *testing.T) {
	const all = "permit (principal, action, resource);\n"
	for name, c := range map[string]struct {
		source string
		allow  bool
	}{
		"a permit of reads":      {`permit (principal, action == Action::"read", resource);`, true},
		"of a server":            {`permit (principal, action == Action::"read", resource in Server::"docs");`, true},
		"of another server":      {`permit (principal, action == Action::"read", resource in Server::"crm");`, false},
		"a permit of calls":      {`permit (principal, action in Action::"call", resource);`, false},
		"a permit of everything": {all, true},
		"a forbid of calls":      {all + `forbid (principal, action in Action::"call", resource);`, true},
		"a forbid of reads":      {all + `forbid (principal, action == Action::"read", resource);`, false},
		"a forbid by URI": {all + `forbid (principal, action == Action::"read", resource)
			when { context.input.uri like "file:///secret/*" };`, false},
		"a forbid by normalised path": {all + `forbid (principal, action == Action::"read", resource)
			when { context.paths.uri like "*/a" };`, false},
		"the default": {string(policies.Default().Source), true},
		"a forbid about a tool's name": {all + `forbid (principal, action,
			resource == Tool::"docs/resource:file:///secret/../secret/a");`, true},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(c.source)})
			if err != nil {
				t.Fatal(err)
			}
			const uri = "file:///secret/../secret/a"
			found, _ := catalog.ParseFeatures("docs", catalog.KindResource,
				[]json.RawMessage{json.RawMessage(`{"uri":"` + uri + `","name":"a"}`)})
			d := engine.Decide(policies.Request{Principal: "ann", Tool: found[0], Input: map[string]any{"uri": uri}})
			if d.Allow != c.allow || len(d.Approve) > 0 {
				t.Errorf("got %v, asks %v (%v), want %v without a question", d.Allow, d.Approve, d.Reasons, c.allow)
			}
		})
	}
}

func TestCheckOfReads(t *testing.T) {
	for _, c := range [][2]string{
		{`permit (principal, action == Action::"read", resource) when { resource.name like "resource:*" };`, ""},
		{`permit (principal, action == Action::"read", resource) when { resource.nam == "x" };`, "nam"},
		{`permit (principal, action in [Action::"read", Action::"call"], resource);`, "separate policy"},
		{`permit (principal, action == Action::"read", resource) when { context.input.path == "x" };`, "path"},
	} {
		source, want := c[0], c[1]
		var texts []string
		for _, problem := range policies.Check([]policies.File{{Name: "p.cedar", Source: []byte(source)}}, nil) {
			texts = append(texts, problem.Text)
		}
		if got := strings.Join(texts, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}
