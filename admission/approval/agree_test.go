package approval_test

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// person returns a person who is signed in at an issuer.
func person(name string, owner bool, roles ...string) approval.Person {
	return approval.Person{Name: "https://login.example#" + name, Owner: owner, Roles: roles}
}

// short returns what follows the issuer in a name.
func short(p approval.Person) string {
	return cmp.Or(p.Name[strings.LastIndexByte(p.Name, '#')+1:], "token")
}

// A question that asks roles or several people is approved when everyone whom it asks has agreed. A person who does not
// belong to them, or who agrees twice, does not count (issue 27).
func TestWhoMustAgree(t *testing.T) {
	ann, bob, carl := person("ann", true), person("bob", false, "finance"), person("carl", false, "finance", "legal")
	nobody := approval.Person{Owner: true, Roles: []string{"finance"}} // a token without --for
	type answer struct {
		who  approval.Person
		want error
	}
	for name, test := range map[string]struct {
		asks    []string
		people  int
		answers []answer
		by      string // of the verdict; empty if the question is still open
	}{
		"the owner": {[]string{"owner"}, 0, []answer{{ann, nil}}, "ann"},
		"a role": {[]string{"finance"}, 1, []answer{{ann, approval.ErrNotAsked}, {bob,
			nil}}, "bob"},
		"the owner with the role": {[]string{"finance"}, 1, []answer{{person("dora", true, "finance"),
			nil}}, "dora"},
		"another role":                        {[]string{"legal"}, 1, []answer{{bob, approval.ErrNotAsked}}, ""},
		"a member of a role is not the owner": {[]string{"owner"}, 1, []answer{{bob, approval.ErrNotAsked}}, ""},
		"the owner and a role": {[]string{"finance", "owner"}, 1, []answer{{ann, nil}, {bob, nil}},
			"ann; bob"},
		"one person in two roles": {[]string{"finance", "legal"}, 1, []answer{{carl, nil}}, "carl"},
		"two people":              {[]string{"finance"}, 2, []answer{{bob, nil}, {carl, nil}}, "bob; carl"},
		"one person twice": {[]string{"finance"}, 2, []answer{{bob, nil}, {bob,
			approval.ErrAgreed}}, ""},
		"one person with two sessions": {[]string{"owner"}, 2,
			[]answer{{person("ann", true), nil}, {person("ann", true, "finance"), approval.ErrAgreed}}, ""},
		"a token that names nobody": {[]string{"finance"}, 2, []answer{{bob, nil}, {nobody,
			approval.ErrNoPerson}}, ""},
		"a token for one person": {[]string{"finance"}, 1, []answer{{nobody, nil}}, "token"},
		"two people, and the owner too": {[]string{"finance", "owner"}, 2, []answer{{bob, nil}, {carl, nil}, {ann,
			nil}}, "bob; carl; ann"},
		"three people": {[]string{"owner"}, 3, []answer{{ann, nil}, {person("b", true), nil},
			{person("c", true), nil}}, "ann; b; c"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := openDesk(t, dir, &approval.Options{InForce: func(caller.Caller) bool { return true }})
			q := question()
			q.Grounds.Approve, q.People = test.asks, test.people
			verdict := ask(t, d, q)
			p := posted(t, dir, q.ID)
			for i, one := range test.answers {
				err := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest, Approve: true,
					For: approval.Extent{Reach: approval.ThisRun}, By: short(one.who), Person: one.who,
					Approver: &caller.Caller{Principal: short(one.who)}})
				if !errors.Is(err, one.want) || one.want == nil && err != nil {
					t.Errorf("answer %d: got %v, want %v", i, err, one.want)
				}
			}
			if test.by == "" {
				open := d.Posted()
				if len(open) != 1 || strings.Contains(open[0].Progress,
					"approved by") != slices.ContainsFunc(test.answers,
					func(a answer) bool { return a.want == nil }) {
					t.Errorf("got %+v, want the question open with its approvals", open)
				}
				if err := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest, By: "anybody"}); err != nil {
					t.Fatal(err)
				}
				if v := <-verdict; v.Answer != approval.No || len(v.Approvers) > 0 {
					t.Errorf("got %+v, want No", v)
				}
				return
			}
			v := <-verdict
			var approvers []string
			for _, one := range v.Approvers {
				approvers = append(approvers, one.Principal)
			}
			if v.Answer != approval.Yes || v.By != test.by || strings.Join(approvers, "; ") != test.by ||
				v.For.Reach != approval.ThisRun {
				t.Errorf("got %+v, want a Yes by %s", v, test.by)
			}
		})
	}
}

// The approval of a person who loses the role while another person is awaited does not count (issue 23).
func TestALostRoleDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	lost := map[string]bool{}
	d := openDesk(t, dir, &approval.Options{InForce: func(who caller.Caller) bool { return !lost[who.Principal] }})
	q := question()
	q.Grounds.Approve, q.People = []string{"finance"}, 2
	verdict := ask(t, d, q)
	p := posted(t, dir, q.ID)
	answer := func(name string) {
		t.Helper()
		err := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest, Approve: true, By: name,
			Person: person(name, false, "finance"), Approver: &caller.Caller{Principal: name}})
		if err != nil {
			t.Fatal(err)
		}
	}
	answer("bob")
	lost["bob"] = true
	answer("carl")
	select {
	case v := <-verdict:
		t.Fatalf("got %+v, want the question open", v)
	default:
	}
	answer("dora")
	if v := <-verdict; v.Answer != approval.Yes || v.By != "carl; dora" {
		t.Errorf("got %+v, want a Yes by carl and dora", v)
	}
}

// The same holds for the person at a terminal of this machine and in a link of the console, who have no credential, and
// if the last approval is one at a terminal. Grants of such a person end with the role, too (issue 23).
func TestALostRoleOfTheLocalUserDoesNotCount(t *testing.T) {
	local := caller.Caller{Principal: "ann", Kind: caller.Local, Roles: []string{"finance"}}
	bob := caller.Caller{Principal: "bob", Kind: caller.User, Roles: []string{"finance"},
		Credentials: []caller.Credential{{ID: "tok_1"}}}
	run := approval.Extent{Reach: approval.ThisRun}
	for name, lost := range map[string]string{"the terminal loses it": "ann", "the terminal is last": "bob"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var ended string
			d := openDesk(t, dir, &approval.Options{Local: func() caller.Caller { return local },
				InForce: func(who caller.Caller) bool { return who.Principal != ended }})
			q := question()
			q.Grounds.Approve, q.People = []string{"finance"}, 2
			verdict := ask(t, d, q)
			p := posted(t, dir, q.ID)
			byTerminal := func() {
				if _, err := approval.Reply(dir, p, approval.Decision{Approve: true, For: run}); err != nil {
					t.Error(err)
				}
			}
			byConsole := func() {
				answer := approval.Answering(bob, p, "console")
				answer.Digest, answer.Approve, answer.For = p.Digest, true, run
				if err := d.Answer(answer); err != nil {
					t.Error(err)
				}
			}
			first, second := byTerminal, byConsole
			if lost == "bob" {
				first, second = second, first
			}
			first()
			ended = lost
			second()
			select {
			case v := <-verdict:
				t.Fatalf("got %+v, want the question open", v)
			default:
			}
			ended = ""
			first()
			if v := <-verdict; v.Answer != approval.Yes || len(v.Approvers) != 2 {
				t.Errorf("got %+v, want a Yes of two", v)
			}
			ended = "ann"
			other := question()
			other.Grounds.Approve, other.People = []string{"finance"}, 2
			verdict = ask(t, d, other)
			p = posted(t, dir, other.ID)
			if err := d.Answer(approval.Response{ID: other.ID, Digest: p.Digest}); err != nil {
				t.Error(err)
			}
			if v := <-verdict; v.Answer != approval.No {
				t.Errorf("after the role was lost: got %+v, want a question and no grant", v)
			}
		})
	}
}

// The owner who answers in the host's dialogue is one person, and not two if the same person answers in the console.
// A role is never asked through the host (issue 27).
func TestTheHostIsOnePerson(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir, nil)
	host := asker{make(chan approval.Verdict, 1)}
	defer d.Register("ses_1", host)()
	host.verdicts <- approval.Verdict{Answer: approval.Yes, By: "ann, host",
		For: approval.Extent{Reach: approval.ThisRun}}
	q := question()
	q.Issuer, q.Principal, q.People = "https://login.example", "ann", 2
	verdict := ask(t, d, q)
	p := posted(t, dir, q.ID)
	for len(d.Posted()) == 1 && d.Posted()[0].Progress == "" { // until the host's answer is taken
		runtime.Gosched()
	}
	answer := approval.Response{ID: q.ID, Digest: p.Digest, Approve: true, By: "ann, console", Person: person("ann",
		true)}
	if err := d.Answer(answer); !errors.Is(err, approval.ErrAgreed) {
		t.Errorf("the same person in the console: got %v, want %v", err, approval.ErrAgreed)
	}
	answer.By, answer.Person = "bob, console", person("bob", true)
	if err := d.Answer(answer); err != nil {
		t.Error(err)
	}
	if v := <-verdict; v.By != "ann, host; bob, console" || v.For.Reach == approval.ThisRun {
		t.Errorf("got %+v, want both, for one call", v)
	}

	role := question()
	role.Grounds.Approve = []string{"finance"}
	host.verdicts <- approval.Verdict{Answer: approval.No}
	verdict = ask(t, d, role)
	p = posted(t, dir, role.ID)
	if err := d.Answer(approval.Response{ID: role.ID, Digest: p.Digest, Approve: true,
		For: approval.Extent{Reach: approval.ThisRun}, By: "bob",
		Person: person("bob", false, "finance")}); err != nil {
		t.Error(err)
	}
	if v := <-verdict; v.By != "bob" || len(host.verdicts) != 1 {
		t.Errorf("got %+v, want the answer of the role and no question in the host", v)
	}
	// The grant of one role is not that of another, although call and rules are the same.
	other := question()
	other.Grounds.Approve = []string{"legal"}
	verdict = ask(t, d, other)
	p = posted(t, dir, other.ID)
	if err := d.Answer(approval.Response{ID: other.ID, Digest: p.Digest}); err != nil {
		t.Error(err)
	}
	if v := <-verdict; v.Answer != approval.No {
		t.Errorf("got %+v, want a question of its own", v)
	}
}

// At a terminal, the user of Airlock answers, with the roles that the configuration gives this user (issue 27).
func TestTheTerminalIsTheUser(t *testing.T) {
	for name, test := range map[string]struct {
		local caller.Caller
		want  string // of the error
		waits string
	}{
		"without the role": {caller.Caller{Principal: "ann"}, "asks finance", ""},
		"with the role": {caller.Caller{Principal: "ann", Roles: []string{"finance"}}, "",
			"waits for another person"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := openDesk(t, dir, &approval.Options{Local: func() caller.Caller { return test.local }})
			q := question()
			q.Grounds.Approve, q.People = []string{"finance"}, 2
			verdict := ask(t, d, q)
			p := posted(t, dir, q.ID)
			for range 2 {
				waits, err := approval.Reply(dir, p, approval.Decision{Approve: true})
				if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) || test.want == "" &&
					(err != nil || !strings.Contains(waits, test.waits)) {
					t.Errorf("got %q, %v, want %q, %q", waits, err, test.waits, test.want)
				}
				test.want = cmp.Or(test.want, "you have approved it already")
			}
			if _, err := approval.Reply(dir, p, approval.Decision{}); err != nil {
				t.Error(err)
			}
			if v := <-verdict; v.Answer != approval.No {
				t.Errorf("got %+v, want No", v)
			}
		})
	}
}
