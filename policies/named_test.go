package policies_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
)

// K-018, K-020
func TestNamedPolicies(t *testing.T) {
	named, err := policies.LoadNamed()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(named.Names(), " "); got != "no_destruction no_pii no_secrets read_only" {
		t.Error(got)
	}
	base := policies.Execution{AgentID: "a", Active: true, Action: "database_query", Effect: "read", SQL: true}
	for name, c := range map[string]struct {
		change func(*policies.Execution)
		want   string // the reason; empty: allowed
	}{
		"no policy": {func(e *policies.Execution) { e.Effect = "destroy" }, ""},
		"read": {func(e *policies.Execution) {
			e.Policies = []string{"read_only", "no_pii", "no_secrets", "no_destruction"}
		}, ""},
		"write query": {func(e *policies.Execution) { e.Effect, e.Policies = "write", []string{"read_only"} },
			"Write query blocked by read_only policy"},
		"unclear query": {func(e *policies.Execution) {
			e.Effect, e.Policies = "unclear",
				[]string{"read_only"}
		}, "Write query blocked by read_only policy"},
		"no effect known": {func(e *policies.Execution) { e.Effect, e.Policies = "", []string{"read_only"} },
			"Write query blocked by read_only policy"},
		"write action": {func(e *policies.Execution) {
			e.Effect, e.SQL, e.Policies = "write", false,
				[]string{"read_only"}
		}, "Write action blocked by read_only policy"},
		"write, not destroy": {func(e *policies.Execution) {
			e.Effect, e.Policies = "write",
				[]string{"no_destruction"}
		}, ""},
		"destroy": {func(e *policies.Execution) {
			e.Effect, e.Policies = "destroy",
				[]string{"no_destruction"}
		}, "Destructive action blocked by no_destruction policy"},
		"personal data": {func(e *policies.Execution) {
			e.Personal, e.Policies = []string{"email"},
				[]string{"no_pii"}
		}, "Personal data blocked by no_pii policy"},
		"secret": {func(e *policies.Execution) {
			e.Secrets, e.Policies = []string{"aws-key"},
				[]string{"no_secrets"}
		}, "Credential blocked by no_secrets policy"},
		"personal data alone": {func(e *policies.Execution) { e.Personal = []string{"email"} }, ""},
		"suspended":           {func(e *policies.Execution) { e.Active = false }, "The agent is suspended"},
		"unknown": {func(e *policies.Execution) { e.Policies = []string{"read_only", "readonly"} },
			`Unknown policy "readonly"`},
		"unknown in any case": {func(e *policies.Execution) { e.Policies = []string{"READ_ONLY"} },
			`Unknown policy "READ_ONLY"`},
		"no name": {func(e *policies.Execution) { e.Policies = []string{""} }, `Unknown policy ""`},
		"a rule's ID, no name": {func(e *policies.Execution) { e.Policies = []string{"kernel.permit"} },
			"Unknown policy"},
	} {
		e := base
		c.change(&e)
		d, reason := named.Decide(e)
		if d.Allow != (c.want == "") || !strings.HasPrefix(reason, c.want) || c.want == "" && reason != "" {
			t.Errorf("%s: %+v, %q; want %q", name, d, reason, c.want)
		}
	}
}

func TestTheOperatorsOwnNamedPolicies(t *testing.T) {
	own := policies.File{Name: "own.cedar", Source: []byte(`
@id("own.small") @policy("small") @reason("More than 10 rows blocked by small policy")
forbid (principal, action == Action::"execute", resource)
when { context.policies.contains("small") && context.input has limit && context.input.limit > 10 };`)}
	named, err := policies.LoadNamed(own)
	if err != nil {
		t.Fatal(err)
	}
	e := policies.Execution{AgentID: "a", Active: true, Effect: "read", Policies: []string{"small"},
		Input: map[string]any{"limit": "11"}}
	if d, reason := named.Decide(e); d.Allow || !strings.Contains(reason, "could not be evaluated") {
		t.Errorf("a rule that errs does not deny: %+v, %q", d, reason)
	}
	e.Input = nil
	if d, reason := named.Decide(e); !d.Allow {
		t.Errorf("%+v, %q", d, reason)
	}
	for problem, source := range map[string]string{
		"has no @approve": `@policy("ask") @approve("owner") permit (principal, action, resource);`,
		"also at":         `@id("kernel.permit") permit (principal, action, resource);`,
		"own.cedar":       `permit (`,
	} {
		if _, err := policies.LoadNamed(policies.File{Name: "own.cedar", Source: []byte(source)}); err == nil ||
			!strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// The example of docs/kernel.md behaves as documented there.
func TestTheNamedPolicyOfTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "kernel.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```cedar\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/kernel.md has no policy")
	}
	named, err := policies.LoadNamed(policies.File{Name: "team.cedar", Source: block[1]})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[json.Number]string{"100": "", "101": "More than 100 rows blocked by small policy"} {
		e := policies.Execution{AgentID: "a", Active: true, Effect: "read", Policies: []string{"small"},
			Input: map[string]any{"limit": limit}}
		if d, reason := named.Decide(e); d.Allow != (want == "") || reason != want {
			t.Errorf("%s: %+v, %q", limit, d, reason)
		}
	}
}
