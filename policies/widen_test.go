package policies_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/policies"
)

// issue 23: a shell of the agent's host changed the policy file, and the change was in
// force at once. A change that may permit more waits for a person, so a change counts as
// narrowing only if that is certain.
func TestPoliciesThatWiden(t *testing.T) {
	const (
		permit = `permit(principal, action, resource) when { resource.risk == "read" };` + "\n"
		other  = `permit(principal, action, resource) when { resource.risk == "write" };` + "\n"
		ask    = `@approve("owner") permit(principal, action, resource) when { resource.risk == "destructive" };` + "\n"
		forbid = `forbid(principal, action, resource) when { resource.denied };` + "\n"
	)
	tests := []struct {
		name          string
		before, after string
		widens        bool
	}{
		{"nothing changed", permit + forbid, permit + forbid, false},
		{"comments and order", permit + forbid, "// more\n" + forbid + permit, false},
		{"a forbid was added", permit, permit + forbid, false},
		{"a permit was removed", permit + other, permit, false},
		{"a permit was added", permit, permit + other, true},
		{"a forbid was removed", permit + forbid, permit, true},
		{"a permit that asks was removed: another may permit without asking", permit + ask, permit, true},
		{"a permit does not ask any more", ask,
			`permit(principal, action, resource) when { resource.risk == "destructive" };`, true},
		{"a condition was changed", permit, other, true},
		{"a forbid was narrowed", permit + forbid,
			permit + `forbid(principal, action, resource) when { resource.denied && false };`, true},
		{"a name by which requests choose it", permit, `@policy("mine") ` + permit, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := policies.Widens([]policies.File{{Name: "a", Source: []byte(test.before)}},
				[]policies.File{{Name: "b", Source: []byte(test.after)}})
			if err != nil || (len(got) > 0) != test.widens {
				t.Errorf("got %q, %v, want widening %v", got, err, test.widens)
			}
		})
	}
}
