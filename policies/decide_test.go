package policies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

func tool(a catalog.Annotations) catalog.Tool {
	return catalog.Tool{ServerID: "files", Name: "delete_file", Annotations: a}
}

func input(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := strictjson.Value([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func load(t testing.TB, sources ...string) *policies.Engine {
	t.Helper()
	files := make([]policies.File, len(sources))
	for i, source := range sources {
		files[i] = policies.File{Name: fmt.Sprintf("p%d.cedar", i), Source: []byte(source)}
	}
	e, err := policies.Load(files...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDefaultPolicy(t *testing.T) {
	e, err := policies.Load(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	const runs, asks, denies = "runs", "asks", "denies"
	tests := []struct {
		name     string
		claims   catalog.Annotations
		settings policies.Settings
		want     string
	}{
		{"a tool that claims nothing", catalog.Annotations{}, policies.Settings{}, asks},
		{"a claim to be read-only that is not trusted", catalog.Annotations{ReadOnlyHint: yes()}, policies.Settings{},
			asks},
		{"a trusted claim to be read-only", catalog.Annotations{ReadOnlyHint: yes()},
			policies.Settings{TrustAnnotations: true}, runs},
		{"trust does not lower what claims nothing", catalog.Annotations{}, policies.Settings{TrustAnnotations: true},
			asks},
		{"read-only and destructive at once", catalog.Annotations{ReadOnlyHint: yes(), DestructiveHint: yes()},
			policies.Settings{TrustAnnotations: true}, asks},
		{"the operator says read", catalog.Annotations{}, policies.Settings{Risk: policies.RiskLow}, runs},
		{"the operator says read of a destructive tool", catalog.Annotations{DestructiveHint: yes()},
			policies.Settings{Risk: policies.RiskLow}, runs},
		{"the operator says destructive of a trusted reader", catalog.Annotations{ReadOnlyHint: yes()},
			policies.Settings{TrustAnnotations: true, Risk: policies.RiskCritical}, asks},
		{"allowed", catalog.Annotations{}, policies.Settings{Allowed: true}, runs},
		{"allowed, but destructive always asks", catalog.Annotations{DestructiveHint: yes()},
			policies.Settings{Allowed: true}, asks},
		{"allowed and said to be a plain write", catalog.Annotations{DestructiveHint: yes()},
			policies.Settings{Allowed: true, Risk: policies.RiskHigh}, runs},
		{"trusted and only adding", catalog.Annotations{DestructiveHint: no()},
			policies.Settings{TrustAnnotations: true}, asks},
		{"denied", catalog.Annotations{ReadOnlyHint: yes()}, policies.Settings{TrustAnnotations: true, Denied: true},
			denies},
		{"denied wins over allowed", catalog.Annotations{}, policies.Settings{Allowed: true, Denied: true}, denies},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := e.Decide(policies.Request{Principal: "ann", Tool: tool(test.claims), Settings: test.settings})
			got := denies
			switch {
			case d.Allow && len(d.Approve) > 0:
				got = asks
			case d.Allow:
				got = runs
			}
			if got != test.want {
				t.Errorf("got %s, want %s: %+v", got, test.want, d)
			}
			if d.Allow == (len(d.Reasons) > 0) {
				t.Errorf("allow %v with reasons %q", d.Allow, d.Reasons)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	const permitAll = `@id("all") permit (principal, action, resource);`
	tests := []struct {
		name    string
		sources []string
		input   string
		session policies.Session
		allow   bool
		approve []string
		want    string // in reasons, errors or deciding policies
	}{
		{"no permit is a denial", []string{`permit (principal == User::"bob", action, resource);`}, `{}`,
			policies.Session{}, false, nil, "no policy permits it"},
		{"a permit by principal", []string{`@id("ann") permit (principal == User::"ann", action, resource);`}, `{}`,
			policies.Session{}, true, nil, "ann"},
		{"a permit by tool", []string{`@id("t") permit (principal, action == Action::"files/delete_file", resource);`},
			`{}`, policies.Session{}, true, nil, "t"},
		{"a permit by server", []string{`@id("s") permit (principal, action, resource in Server::"files");`}, `{}`,
			policies.Session{}, true, nil, "s"},
		{"a permit for any tool", []string{`@id("g") permit (principal, action in Action::"call", resource);`}, `{}`,
			policies.Session{}, true, nil, "g"},
		{"forbid overrules permit", []string{permitAll,
			`@id("f") @reason("not on Sundays") forbid (principal, action, resource);`}, `{}`, policies.Session{},
			false, nil, "policy f (p1.cedar:1) forbids it: not on Sundays"},
		{"a condition on arguments", []string{permitAll,
			`forbid (principal, action, resource) when { context.input.path like "/etc/*" };`},
			`{"path":"/etc/passwd"}`, policies.Session{}, false, nil, "forbids it"},
		{"the same with a harmless path", []string{permitAll,
			`forbid (principal, action, resource) when { context.input.path like "/etc/*" };`}, `{"path":"/srv"}`,
			policies.Session{}, true, nil, "all"},
		{"a forbid with a type error denies", []string{permitAll,
			`@id("bad") forbid (principal, action, resource) when { context.input.path like "/etc/*" };`}, `{"path":7}`,
			policies.Session{}, false, nil, "bad (p1.cedar:1)"},
		{"a missing attribute denies", []string{permitAll,
			`forbid (principal, action, resource) when { context.input.path like "/etc/*" };`}, `{}`,
			policies.Session{}, false, nil, "could not be evaluated"},
		{"a number no 64 bits hold denies where it is compared",
			[]string{permitAll, `forbid (principal, action, resource) when { context.input.n > 5 };`}, `{"n":1e30}`,
			policies.Session{}, false, nil, "could not be evaluated"},
		{"a whole number written with an exponent is a whole number",
			[]string{permitAll, `forbid (principal, action, resource) when { context.input.n > 5 };`}, `{"n":6e0}`,
			policies.Session{}, false, nil, "forbids it"},
		{"decimals", []string{permitAll,
			`forbid (principal, action, resource) when { context.input.n.greaterThan(decimal("1.25")) };`},
			`{"n":1.2501}`, policies.Session{}, false, nil, "forbids it"},
		{"a list too long to look into denies", []string{permitAll,
			`forbid (principal, action, resource) when { context.input has l && context.input.l.contains("x") };`},
			`{"l":[` + strings.Repeat(`"a",`, 1500) + `"x"]}`, policies.Session{}, false, nil,
			"could not be evaluated"},
		{"null is absent", []string{permitAll, `forbid (principal, action, resource) when { context.input has path };`},
			`{"path":null}`, policies.Session{}, true, nil, "all"},
		{"calls of the session", []string{permitAll,
			`forbid (principal, action, resource) when { context.session.calls >= 3 };`}, `{}`,
			policies.Session{Calls: 3}, false, nil, "forbids it"},
		{"servers read before", []string{permitAll,
			`forbid (principal, action, resource) when { context.session.servers.contains("mail") };`}, `{}`,
			policies.Session{Servers: []string{"mail"}}, false, nil, "forbids it"},
		{"obligations are united", []string{permitAll,
			`@id("ask") @approve("owner") permit (principal, action, resource);`}, `{}`, policies.Session{}, true,
			[]string{"owner"}, "ask"},
		{"an obligation of a permit that does not apply",
			[]string{permitAll, `@approve("owner") permit (principal == User::"bob", action, resource);`}, `{}`,
			policies.Session{}, true, nil, "all"},
		{"an unknown obligation denies", []string{permitAll,
			`@id("x") @notify("ops") permit (principal, action, resource);`}, `{}`, policies.Session{}, false, nil,
			"@notify"},
		{"an unknown approver denies", []string{`@approve("nobody") permit (principal, action, resource);`}, `{}`,
			policies.Session{}, false, nil, `"nobody"`},
		{"an error beats an approval", []string{`@approve("owner") permit (principal, action, resource);`,
			`permit (principal, action, resource) when { context.input.x };`}, `{}`, policies.Session{}, false, nil,
			"could not be evaluated"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := load(t, test.sources...).Decide(policies.Request{
				Principal: "ann", Tool: tool(catalog.Annotations{}), Input: input(t, test.input), Session: test.session,
			})
			if d.Allow != test.allow || !slices.Equal(d.Approve, test.approve) {
				t.Errorf("got allow %v approve %q, want %v %q: %+v", d.Allow, d.Approve, test.allow, test.approve, d)
			}
			said := strings.Join(slices.Concat(d.Reasons, d.Errors, d.Policies()), "\n")
			if !strings.Contains(said, test.want) {
				t.Errorf("got %q, want %q in it", said, test.want)
			}
		})
	}
}

// Issue 32: the facts of the session are read from the disk only if a rule may depend on them.
func TestReadsSession(t *testing.T) {
	for condition, want := range map[string]bool{
		`context.session.calls > 1`:                                    true,
		`context.input has a && context.session.servers.contains("x")`: true,
		`context["session"] has calls`:                                 true,
		`context has session`:                                          true,
		`{"a": context}.a.session.calls > 1`:                           true,
		`context == {}`:                                                true,
		`resource.name like "session" || context.input.session == 1`:   false,
		`context has input && context.elicits`:                         false,
	} {
		e := load(t, `forbid (principal, action, resource) when { `+condition+` };`)
		if got := e.ReadsSession(); got != want {
			t.Errorf("%s: got %v, want %v", condition, got, want)
		}
	}
	if (*policies.Engine)(nil).ReadsSession() {
		t.Error("no rules read the session")
	}
}

func TestDeniedToolsNeverRunWhateverTheRulesSay(t *testing.T) {
	for _, source := range []string{
		`permit (principal, action, resource);`,
		`@approve("owner") permit (principal, action, resource);`,
		`permit (principal, action, resource) when { resource.allowed || resource.denied };`,
	} {
		e, err := policies.Load(policies.File{Name: "own.cedar", Source: []byte(source)})
		if err != nil {
			t.Fatal(err)
		}
		d := e.Decide(policies.Request{Principal: "ann", Tool: tool(catalog.Annotations{}),
			Settings: policies.Settings{Allowed: true, Denied: true}})
		if d.Allow || len(d.Approve) > 0 || len(d.Reasons) != 1 ||
			!strings.Contains(d.Reasons[0], "servers.<id>.deny") {
			t.Errorf("%s: got %+v, want a denial that names servers.<id>.deny", source, d)
		}
	}
}

func TestZeroValuesDeny(t *testing.T) {
	var none *policies.Engine
	if d := none.Decide(policies.Request{}); d.Allow || len(d.Reasons) == 0 {
		t.Errorf("no engine: got %+v, want a denial with a reason", d)
	}
	if d := (policies.Decision{}); d.Allow {
		t.Error("the zero decision allows")
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"nothing", ``, "no policy"},
		{"bad syntax", "permit (principal, action, resource)\nwhen { }", "p.cedar"},
		{"one id twice", "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, " +
			"resource);", `the id "a" is also at p.cedar:1`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(test.source)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestToolIDIsUnambiguous(t *testing.T) {
	if a, b := policies.ToolID("a/b", "c"), policies.ToolID("a", "b/c"); a == b {
		t.Errorf("both are %q", a)
	}
	if a, b := policies.ToolID("a%2Fb", "c"), policies.ToolID("a/b", "c"); a == b {
		t.Errorf("both are %q", a)
	}
}

func TestVersionFollowsTheText(t *testing.T) {
	a := load(t, `permit (principal, action, resource);`)
	b := load(t, `permit (principal, action, resource) ;`)
	if a.Version() == b.Version() {
		t.Error("two texts have one version")
	}
}

func BenchmarkDecide400(b *testing.B) {
	var source strings.Builder
	for i := range 200 {
		fmt.Fprintf(&source,
			"@id(\"p%d\") permit (principal == User::\"u%d\", action == Action::\"files/t%d\", resource);\n", i, i, i)
		fmt.Fprintf(&source,
			"@id(\"f%d\") forbid (principal, action, resource in Server::\"files\") when { context.input has path && "+
				"context.input.path like \"/secret%d/*\" };\n", i, i)
	}
	e := load(b, source.String())
	req := policies.Request{Principal: "u7", Tool: catalog.Tool{ServerID: "files", Name: "t7"},
		Input: input(b, `{"path":"/srv/docs/a","head":10}`)}
	b.ReportAllocs()
	for b.Loop() {
		if d := e.Decide(req); !d.Allow {
			b.Fatal(d)
		}
	}
}
