package caller

import (
	"maps"
	"slices"
	"testing"
)

// with returns ann with other scopes, and what change does to her.
func with(scopes []string, change ...func(*Caller)) Caller {
	c := ann
	c.Scopes = scopes
	for _, do := range change {
		do(&c)
	}
	return c
}

// The table of docs/serving.md: which callers may reach which objects through which door (issue
// 23).
func TestMay(t *testing.T) {
	small := func(c *Caller) { c.Profile = "small" }
	later := func(c *Caller) { c.Session = "ses_2" }
	bob := func(c *Caller) { c.Principal = "bob" }
	all := []string{ScopeRun, ScopeApprove, ScopeAudit, ScopeAgents}
	admin := []string{ScopeAdmin, ScopeAllRuns}
	callers := map[string]Caller{
		"ann": with(all), "ann, another session": with(all, later), "ann, small": with(all, small),
		"ann, no scope": with(nil), "bob": with(all, bob),
		"ann, small, another session": with(all, small, later),
		"admin":                       with(admin, bob), "admin, small": with(admin, bob, small),
		"looking": with([]string{ScopeRun, ScopeAudit, ScopeAllRuns}, bob),
		"nobody":  {Scopes: admin}, "no session": with(admin, func(c *Caller) { c.Session = "" }),
		"another kind":   with(all, func(c *Caller) { c.Kind = Agent }),
		"another issuer": with(all, func(c *Caller) { c.Issuer = "" }),
	}
	smallOwner := ann.Owner()
	smallOwner.Profile = "small"
	ofAgent := Owner{Principal: ann.Name(), Session: "agent_1"}
	ofSmallAgent := Owner{Principal: ann.Name(), Session: "agent_2", Profile: "small"}
	for _, test := range []struct {
		name   string
		object Object
		door   Door
		act    Act
		who    []string // may; all others may not
	}{
		{"a run, from a host", Object{Kind: Run, Owner: ann.Owner()}, Hosts, See, []string{"ann", "admin", "looking"}},
		{"a run, by a person", Object{Kind: Run, Owner: ann.Owner()}, People, Change,
			[]string{"ann", "ann, another session", "admin", "looking"}},
		{"a run of a profile, from a host", Object{Kind: Run, Owner: smallOwner}, Hosts, Change,
			[]string{"ann", "ann, small", "admin", "admin, small", "looking"}},
		{"a run of a profile, by a person", Object{Kind: Run, Owner: smallOwner}, People, See,
			[]string{"ann", "ann, another session", "ann, small", "ann, small, another session", "admin",
				"admin, small", "looking"}},
		{"a file, from a host", Object{Kind: File, Owner: ann.Owner()}, Hosts, See, []string{"ann", "admin",
			"looking"}},
		{"a file, to change it", Object{Kind: File, Owner: ann.Owner()}, People, Change, nil},
		{"a recording, by a person", Object{Kind: Recording, Owner: ann.Owner()}, People, See,
			[]string{"ann", "ann, another session", "admin", "looking"}},
		{"a question, to see it", Object{Kind: Question, Owner: ann.Owner()}, People, See,
			[]string{"ann", "ann, another session", "admin"}},
		{"a question of a profile, to answer it", Object{Kind: Question, Owner: smallOwner}, People, Change,
			[]string{"ann", "ann, another session", "ann, small", "ann, small, another session", "admin",
				"admin, small"}},
		{"a grant that bob gave", Object{Kind: Question, Owner: ann.Owner(), Givers: []string{with(all, bob).Key()}},
			People, Change, []string{"ann", "ann, another session", "admin", "bob"}},
		{"a run, beside whoever gave it", Object{Kind: Run, Owner: ann.Owner(), Givers: []string{with(all, bob).Key()}},
			People, See, []string{"ann", "ann, another session", "admin", "looking"}},
		{"the log", Object{Kind: Log}, People, See,
			[]string{"ann", "ann, another session", "bob", "admin", "looking", "another kind", "another issuer"}},
		{"the log, to change it", Object{Kind: Log}, People, Change, nil},
		{"a server that no profile shows", Object{Kind: Server}, People, See,
			[]string{"ann", "ann, another session", "bob", "admin", "looking", "another kind", "another issuer"}},
		{"a tool of a profile", Object{Kind: Tool, Owner: Owner{Profile: "small"}}, People, Change,
			[]string{"admin", "admin, small"}},
		{"an agent", Object{Kind: AgentKind, Owner: ofAgent}, People, Change, []string{"ann", "ann, another session",
			"admin"}},
		{"an agent of a profile", Object{Kind: AgentKind, Owner: ofSmallAgent}, People, See,
			[]string{"ann", "ann, another session", "ann, small", "ann, small, another session", "admin",
				"admin, small"}},
		{"a token of a profile", Object{Kind: Token, Owner: Owner{Profile: "small"}}, People, Change,
			[]string{"admin", "admin, small"}},
		{"a token without a profile", Object{Kind: Token}, People, See, []string{"admin"}},
		{"what nothing is known of", Object{Kind: "", Owner: ann.Owner()}, People, See, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(callers)) {
				if got, want := callers[name].May(test.door, test.act, test.object),
					slices.Contains(test.who, name); got != want {
					t.Errorf("%s: got %t, want %t", name, got, want)
				}
			}
		})
	}
}

// An agent reaches only itself, even with more scopes, and cannot manage agents.
func TestAnAgentMay(t *testing.T) {
	itself := Caller{Principal: "agent_1", Kind: Agent, Session: "agent_1",
		Scopes: []string{ScopeRun, ScopeAgents, ScopeAdmin}}
	for name, test := range map[string]struct {
		act   Act
		agent string
		want  bool
	}{"itself": {See, "agent_1", true}, "to manage itself": {Change, "agent_1", false},
		"another": {See, "agent_2", false}} {
		if got := itself.May(People, test.act, Object{Kind: AgentKind, Owner: Owner{Principal: "agent_1",
			Session: test.agent}}); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

// The user of the operating system needs no scope to run code, and has no other.
func TestTheLocalUserHas(t *testing.T) {
	user := Caller{Principal: "ann", Kind: Local, Session: "ses_1"}
	for _, scope := range []string{ScopeRun, ScopeApprove, ScopeAudit, ScopeAgents, ScopeAdmin} {
		if got := user.Has(scope); got != (scope == ScopeRun) {
			t.Errorf("%s: got %t", scope, got)
		}
	}
	user.Scopes = []string{ScopeAudit} // who got a link to look
	if user.Has(ScopeRun) {
		t.Error("got the scope run beside those that were given")
	}
}
