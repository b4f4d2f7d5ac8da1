package policies_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

const proposedSchema = `{"type": "object", "properties": {
	"path": {"type": "string"}, "mode": {"type": "string"}, "content": {"type": "string"},
	"force": {"type": "boolean"}, "count": {"type": "integer"}, "amount": {"type": "number"},
	"to": {"type": "array", "items": {"type": "string"}}, "odd \"name\" \u00e9": {"type": "string"}}}`

func proposedCall(t *testing.T, arguments string) policies.Request {
	t.Helper()
	decoded, err := strictjson.Value([]byte(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return policies.Request{Principal: `ann "of" https://id.example#1`, Input: decoded.(map[string]any),
		Tool: catalog.Tool{ServerID: "fi/les", Name: "write_file", InputSchema: json.RawMessage(proposedSchema)}}
}

// A proposed rule permits calls that are like one, and no others (issue 27).
func TestPropose(t *testing.T) {
	long := strings.Repeat("long ", 100)
	for name, test := range map[string]struct {
		call    string
		free    []string
		like    []string
		unlike  []string
		anyFree string // the arguments that are free, with spaces between them
	}{
		"a path": {
			call: `{"path": "/srv/docs/a.md", "content": "` + long + `"}`, anyFree: "content",
			like: []string{`{"path": "/srv/docs/b.md", "content": ""}`, `{"path": "/srv/docs/x/../c", "content": "y"}`},
			unlike: []string{
				`{"path": "/srv/docs/../secret", "content": ""}`, `{"path": "/srv/docsx/a", "content": ""}`,
				`{"path": "/srv/docs/%2e%2e/a", "content": ""}`, `{"content": ""}`, `{"path": 1, "content": ""}`,
				`{"path": "/srv/docs/b.md", "content": "", "force": true}`,
			},
		},
		"short values": {
			call: `{"mode": "a*\\ \"\u2028\u00e9", "force": false, "count": 3, "amount": 1.5, "to": ["x", "y"]}`,
			like: []string{
				`{"to": ["y", "x"], "amount": 1.50, "count": 3, "force": false, "mode": "a*\\ \"\u2028\u00e9"}`,
			},
			unlike: []string{
				`{"mode": "axx\\ \"\u2028\u00e9", "force": false, "count": 3, "amount": 1.5, "to": ["x", "y"]}`,
				`{"mode": "a*\\ \"\u2028\u00e9", "force": true, "count": 3, "amount": 1.5, "to": ["x", "y"]}`,
				`{"mode": "a*\\ \"\u2028\u00e9", "force": false, "count": 4, "amount": 1.5, "to": ["x", "y"]}`,
				`{"mode": "a*\\ \"\u2028\u00e9", "force": false, "count": 3, "amount": 1.6, "to": ["x", "y"]}`,
				`{"mode": "a*\\ \"\u2028\u00e9", "force": false, "count": 3, "amount": 1.5, "to": ["x"]}`,
			},
		},
		"a free value": {call: `{"mode": "x", "count": 1}`, free: []string{"mode"}, anyFree: "mode",
			like: []string{`{"mode": "y", "count": 1}`, `{"count": 1}`}, unlike: []string{`{"mode": "x", "count": 2}`}},
		"an odd name":  {call: `{"odd \"name\" \u00e9": "v"}`, unlike: []string{`{}`, `{"odd \"name\" \u00e9": "w"}`}},
		"a line break": {call: `{"mode": "x\n};\npermit (principal, action, resource);\n//"}`, unlike: []string{`{}`}},
		"null":         {call: `{"mode": null}`, like: []string{`{}`}, unlike: []string{`{"mode": "x"}`}},
		"a URL": {call: `{"path": "https://a.example/x/y"}`,
			unlike: []string{`{"path": "https://a.example/x/z"}`}},
		"no path": {call: `{"path": "owner/repository", "mode": "either/or, 3/4 of it"}`,
			unlike: []string{`{"path": "owner/other", "mode": "either/or, 3/4 of it"}`,
				`{"path": "owner/repository", "mode": "either/or, 3/4 of all"}`}},
		"the root": {call: `{"path": "/etc"}`, unlike: []string{`{"path": "/srv"}`}},
		"nothing":  {call: `{}`, like: []string{`{}`}, unlike: []string{`{"count": 1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			req := proposedCall(t, test.call)
			p, err := policies.Propose(req, `ann "the" boss`, test.free)
			if err != nil {
				t.Fatal(err)
			}
			if free := strings.Join(p.Free, " "); free != test.anyFree {
				t.Errorf("free are %q, want %q", free, test.anyFree)
			}
			servers := []catalog.Server{{ID: "fi/les", Tools: []catalog.Tool{req.Tool}}}
			file := policies.File{Name: "p.cedar", Source: []byte(p.Rule)}
			if problems := policies.Check([]policies.File{file}, servers); len(problems) > 0 {
				t.Errorf("the rule has mistakes: %v\n%s", problems, p.Rule)
			}
			engine, err := policies.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, like := range append(test.like, test.call) {
				if d := engine.Decide(proposedCall(t, like)); !d.Allow || len(d.Approve) > 0 {
					t.Errorf("%s: %+v\n%s", like, d, p.Rule)
				}
			}
			for _, unlike := range test.unlike {
				if engine.Decide(proposedCall(t, unlike)).Allow {
					t.Errorf("%s is permitted by\n%s", unlike, p.Rule)
				}
			}
			other := proposedCall(t, test.call)
			other.Principal = "bob"
			riskier := proposedCall(t, test.call)
			riskier.Settings.Risk = policies.RiskCritical
			asked := proposedCall(t, test.call)
			asked.Elicits = true
			for what, call := range map[string]policies.Request{"another principal": other, "another risk": riskier,
				"a question of the server": asked} {
				if engine.Decide(call).Allow {
					t.Errorf("%s is permitted by\n%s", what, p.Rule)
				}
			}
		})
	}
}

// A resource is read by an action of all resources, so the rule names the resource (issue 27).
func TestProposeForAResource(t *testing.T) {
	call := func(uri string) policies.Request {
		return policies.Request{Principal: "ann", Input: map[string]any{"uri": uri}, Tool: catalog.Tool{
			ServerID: "files", Name: catalog.FeatureName(catalog.KindResource, uri), Kind: catalog.KindResource}}
	}
	p, err := policies.Propose(call("notes://plan"), "ann", []string{"uri"})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(p.Rule)})
	if err != nil {
		t.Fatal(err)
	}
	if !engine.Decide(call("notes://plan")).Allow || engine.Decide(call("notes://salaries")).Allow {
		t.Error(p.Rule)
	}
}

// Arguments that no rule can compare are refused, also beside others.
func TestProposeRefuses(t *testing.T) {
	for call, free := range map[string][]string{
		`{"amount": 1e30}`: nil, `{"to": [1e30]}`: nil, `{"mode": "x"}`: {"count"},
	} {
		p, err := policies.Propose(proposedCall(t, call), "ann", free)
		if err == nil || errors.Is(err, policies.ErrNoRule) {
			t.Errorf("%s: got %v, %v", call, p, err)
		}
	}
	if _, err := policies.Propose(proposedCall(t, `{"amount": 1e30}`), "ann", []string{"amount"}); err != nil {
		t.Error(err)
	}
}
