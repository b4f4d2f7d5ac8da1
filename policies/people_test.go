package policies_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

func facts(groups []string, claims map[string]string) caller.Facts {
	f := caller.Facts{Groups: groups}
	for name, value := range claims {
		if f.Claims == nil {
			f.Claims = map[string]json.RawMessage{}
		}
		f.Claims[name] = json.RawMessage(value)
	}
	return f
}

// onLines writes each policy on a separate line.
func onLines(source string) []byte { return []byte(strings.ReplaceAll(source, ";", ";\n")) }

// Groups and claims of the principal decide (issue 27).
func TestGroupsAndClaims(t *testing.T) {
	const inGroup = `permit (principal in Group::"finance", action, resource);`
	for name, test := range map[string]struct {
		source string
		facts  caller.Facts
		want   bool
	}{
		"a member":            {inGroup, facts([]string{"all", "finance"}, nil), true},
		"not a member":        {inGroup, facts([]string{"finances", "Finance"}, nil), false},
		"no groups":           {inGroup, caller.Facts{}, false},
		"a user of that name": {`permit (principal in Group::"ann", action, resource);`, caller.Facts{}, false},
		"the list of groups": {`permit (principal, action, resource) when { principal.groups.contains("finance")
			};`, facts([]string{"finance"}, nil), true},
		"a forbid of a group": {`permit (principal, action, resource); forbid (principal in Group::"guests",
			action, resource);`, facts([]string{"guests"}, nil), false},
		"a text": {`permit (principal, action, resource) when { principal.claims.dept == "hr" };`,
			facts(nil, map[string]string{"dept": `"hr"`}), true},
		"another text": {`permit (principal, action, resource) when { principal.claims.dept == "hr" };`,
			facts(nil, map[string]string{"dept": `"it"`}), false},
		"a missing claim denies": {`permit (principal, action, resource); forbid (principal, action, resource) when
			{ principal.claims.dept == "hr" };`, caller.Facts{}, false},
		"a claim that is tested": {`permit (principal, action, resource) when { !(principal.claims has dept) };`,
			caller.Facts{}, true},
		"a list": {`permit (principal, action, resource) when {
			principal.claims.sites.contains("zrh") };`, facts(nil, map[string]string{"sites": `["ber","zrh"]`}), true},
		"a number": {`permit (principal, action, resource) when { principal.claims.level > 2 };`,
			facts(nil, map[string]string{"level": `3`}), true},
		"a Boolean": {`permit (principal, action, resource) when { principal.claims.staff };`,
			facts(nil, map[string]string{"staff": `true`}), true},
		"what Cedar cannot hold": {`permit (principal, action, resource) when { principal.claims.level < 9 };`,
			facts(nil, map[string]string{"level": `1e400`}), false},
		"a name that is a keyword": {`permit (principal, action, resource) when { principal.claims["if"] == "x" };`,
			facts(nil, map[string]string{"if": `"x"`}), true},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := policies.Load(policies.File{Name: "p.cedar", Source: onLines(test.source)})
			if err != nil {
				t.Fatal(err)
			}
			r := policies.Request{Principal: "ann", Facts: test.facts, Tool: catalog.Tool{ServerID: "crm", Name: "get"}}
			for range 2 { // the second is from the cache
				if d := engine.Decide(r); d.Allow != test.want {
					t.Errorf("got %+v, want allow %t", d, test.want)
				}
			}
			others := r
			others.Facts = facts([]string{"somebody"}, map[string]string{"dept": `"none"`})
			engine.Decide(others)
			if d := engine.Decide(r); d.Allow != test.want {
				t.Errorf("after a decision about other facts: got %+v, want allow %t", d, test.want)
			}
			if problems := policies.Check([]policies.File{{Name: "p.cedar", Source: onLines(test.source)}},
				nil); len(problems) > 0 {
				t.Errorf("got %v, want no problem", problems)
			}
		})
	}
}

// Connections are decided with the groups of the owner, and those of contained servers without any (issue 27).
func TestGroupsOfConnections(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(
		`permit (principal in Group::"net", action == Action::"connect", resource);
		permit (principal is ContainedServer, action == Action::"connect", resource);
		forbid (principal, action, resource) when { principal.groups.contains("guests") };`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		c    policies.Connection
		want bool
	}{
		{policies.Connection{Principal: "ann", Facts: facts([]string{"net"}, nil)}, true},
		{policies.Connection{Principal: "ann", Facts: facts([]string{"guests", "net"}, nil)}, false},
		{policies.Connection{Principal: "ann"}, false},
		{policies.Connection{Principal: "crm", Server: true}, true},
	} {
		test.c.Host, test.c.Port = "example.com", 443
		if d := engine.DecideConnect(test.c); d.Allow != test.want {
			t.Errorf("%+v: got %+v, want allow %t", test.c, d, test.want)
		}
	}
}

// All permits that match determine the approvers (issue 27).
func TestWhoApproves(t *testing.T) {
	const ask = `@id("ask") @approve("owner") permit (principal, action, resource);`
	for name, test := range map[string]struct {
		source string
		want   []string
		people int
		denied bool
	}{
		"the owner": {ask, []string{"owner"}, 1, false},
		"a role": {`@approve("finance") permit (principal, action, resource);`,
			[]string{"finance"}, 1, false},
		"a role and the owner": {ask + `@approve("finance") permit (principal, action, resource);`,
			[]string{"finance", "owner"}, 1, false},
		"two people": {`@approve("finance") @people("2") permit (principal, action, resource);`,
			[]string{"finance"}, 2, false},
		"the most people": {`@approve("finance") @people("3") permit (principal, action, resource);
			@approve("owner") @people("2") permit (principal, action,
			resource);`, []string{"finance", "owner"}, 3, false},
		"in advance": {ask + `@approved("ann") permit (principal, action, resource);`, nil, 0,
			false},
		"in advance, of another call": {ask + `@approved("ann") permit (principal, action == Action::"crm/put",
			resource);`, []string{"owner"}, 1, false},
		"in advance is not a role": {`@approve("finance") permit (principal, action, resource);
			@approved("ann") permit (principal, action, resource);`, []string{"finance"}, 1, false},
		"in advance is not two people": {`@approve("owner") @people("2") permit (principal, action, resource);
			@approved("ann") permit (principal, action, resource);`, []string{"owner"}, 2, false},
		"in advance is not over a forbid": {`@approved("ann") permit (principal, action, resource); forbid (principal,
			action, resource);`, nil, 0, true},
		"an unknown role":        {`@approve("legal") permit (principal, action, resource);`, nil, 0, true},
		"people without approve": {`@people("2") permit (principal, action, resource);`, nil, 0, true},
		"one person": {`@approve("owner") @people("1") permit (principal, action, resource);`,
			nil, 0, true},
		"too many people": {`@approve("owner") @people("6") permit (principal, action, resource);`,
			nil, 0, true},
		"in advance by nobody": {`@approved("") permit (principal, action, resource);`, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := policies.File{Name: "p.cedar", Source: onLines(test.source)}
			engine, err := policies.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			d := engine.WithRoles([]string{"finance"}).Decide(policies.Request{Principal: "ann",
				Tool: catalog.Tool{ServerID: "crm", Name: "get"}})
			if d.Allow == test.denied || !slices.Equal(d.Approve, test.want) || d.People != test.people {
				t.Errorf("got %+v, want %v, %d, denied %t", d, test.want, test.people, test.denied)
			}
			problems := policies.Check([]policies.File{file}, nil, "finance")
			mistaken := slices.ContainsFunc(problems, func(p policies.Problem) bool {
				return strings.Contains(p.Text,
					"@")
			})
			if wrong := test.denied && !strings.Contains(test.source, "forbid"); mistaken != wrong {
				t.Errorf("got the problems %v, want a mistake: %t", problems, wrong)
			}
		})
	}
}

// A rule that asks two people adds the second one to what the rules of Airlock ask for.
func TestTwoPeopleBesideTheDefault(t *testing.T) {
	own := policies.File{Name: "two.cedar", Source: []byte(`@id("destructive.two")
@approve("owner")
@people("2")
permit (principal, action, resource)
when { resource.risk == "destructive" };
`)}
	engine, err := policies.Load(policies.Default(), own)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	for name, test := range map[string]struct {
		annotations catalog.Annotations
		want        int
	}{
		"destructive": {catalog.Annotations{DestructiveHint: &yes}, 2},
		"a write":     {catalog.Annotations{DestructiveHint: new(bool)}, 1},
	} {
		d := engine.Decide(policies.Request{Principal: "ann",
			Tool: catalog.Tool{ServerID: "crm", Name: "put", Annotations: test.annotations}})
		if !d.Allow || d.People != test.want || !slices.Equal(d.Approve, []string{"owner"}) {
			t.Errorf("%s: got %+v, want %d people", name, d, test.want)
		}
	}
}
