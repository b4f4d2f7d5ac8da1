package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// Person answers a question.
type Person struct {
	// Name is the principal, as caller.Caller.Name returns it. It is empty for a token that names no person, which
	// does not count where different persons are required.
	Name  string
	Owner bool     // may answer for the owner of the run
	Roles []string // may answer in these roles
}

// PersonOf returns a caller as a person. owner reports whether the caller may answer for the owner of the run.
func PersonOf(who caller.Caller, owner bool) Person {
	p := Person{Name: who.Name(), Owner: owner, Roles: who.Roles}
	if len(who.Credentials) > 0 && who.Principal == who.Credentials[0].ID {
		p.Name = "" // a token without --for is its own principal
	}
	return p
}

// Owner returns whom the run that asks belongs to.
func (a Asking) Owner() caller.Owner {
	return caller.Owner{Principal: a.Principal, Kind: caller.Kind(a.CallerKind), Issuer: a.Issuer, Session: a.SessionID,
		Profile: a.Profile}
}

// Object returns the object to pass to caller.Caller.May: the question, its owner, and the roles whose members may
// answer it.
func (a Asking) Object(roles []string) caller.Object {
	return caller.Object{Kind: caller.Question, Owner: a.Owner(), Roles: roles}
}

// hasOne reports whether a caller has a credential with one of the IDs.
func hasOne(who caller.Caller, ids []string) (bool, error) {
	return slices.ContainsFunc(who.Credentials, func(one caller.Credential) bool {
		return slices.Contains(ids, one.ID)
	}), nil
}

// OwnCheck returns ErrOwn if a caller would approve what it asks itself.
func (d *Desk) OwnCheck(who caller.Caller, a Asking) error {
	own, err := d.opts.IsOwn(who, strings.Fields(a.Credentials))
	if err == nil && own {
		err = ErrOwn
	}
	return err
}

// Answering returns the response of a caller to a question, through a channel such as the console. The caller must be
// one who May change the question, see Asking.Object. The answer is a refusal until Approve is set.
func Answering(who caller.Caller, q Posted, channel string) Response {
	r := Response{ID: q.ID, By: who.Name() + ", " + channel, Approver: &who}
	// A member of a role that is asked does not answer for the owner.
	r.Person = PersonOf(who, who.May(caller.People, caller.Change, q.Object(nil)))
	return r
}

// agreement is the Yes of one person.
type agreement struct {
	person Person
	by     string
	// approver is who has agreed, see Verdict.Approvers; nil for the owner in the host's own dialogue.
	approver *caller.Caller
	extent   Extent
}

var (
	// ErrNotAsked is returned if a person approves a question that is for other people.
	ErrNotAsked = errors.New("this question is for other people")
	// ErrOwn is returned if a caller approves what it asks itself.
	ErrOwn = errors.New("the token that asks cannot approve, nor a token that was made with it: use a link of " +
		"airlock console, the identity provider, or a token that the agent's host does not have")
	// ErrAgreed is returned if a person approves a question again that needs another person.
	ErrAgreed = errors.New("you have approved it already, and another person has to approve it, too")
	// ErrNoPerson is returned if a token approves that names no person, and different persons are required.
	ErrNoPerson = errors.New("different people have to approve it, and this token names nobody: use one that was " +
		"made with --for, or sign in")
)

// asks returns who must approve a question: the owner, unless rules name others.
func (g Grounds) asks() []string {
	if len(g.Approve) == 0 {
		return []string{policies.Owner}
	}
	return g.Approve
}

// RolesAsked returns the roles that the question asks.
func (g Grounds) RolesAsked() []string {
	return slices.DeleteFunc(slices.Clone(g.Approve), func(name string) bool { return name == policies.Owner })
}

// Whom returns whom a question asks, for people; empty if one person answers for the owner.
func (g Grounds) Whom() string {
	asks := g.asks()
	if g.People < 2 && slices.Equal(asks, []string{policies.Owner}) {
		return ""
	}
	text := strings.Join(asks, " and ")
	if g.People > 1 {
		text += fmt.Sprintf(", %d different persons", g.People)
	}
	return text
}

// agreeLocked adds a person's Yes. The question is decided when everyone has agreed whom it asks.
func (d *Desk) agreeLocked(o *openQuestion, one agreement) error {
	g := o.question.Grounds
	if o.question.Elicitation != nil {
		one.extent = Extent{} // a server's own question is answered once
	}
	if err := o.question.Allows(one.extent); err != nil {
		return err
	}
	switch {
	case !slices.ContainsFunc(g.asks(), o.answers(one.person)):
		return detailed{ErrNotAsked, "the question asks " + strings.Join(g.asks(),
			" and ") + ", and you may not answer for them"}
	case g.People > 1 && one.person.Name == "":
		return ErrNoPerson
	case slices.ContainsFunc(o.agreed, func(a agreement) bool { return a.person.Name == one.person.Name }):
		return ErrAgreed
	}
	o.agreed = append(o.agreed, one)
	if o.missing() != "" {
		return nil
	}
	v := Verdict{Answer: Yes, For: o.agreed[0].extent}
	var by []string
	for _, a := range o.agreed {
		by = append(by, a.by)
		v.For = narrower(v.For, a.extent)
		if a.approver != nil {
			v.Approvers = append(v.Approvers, *a.approver)
		}
	}
	v.By = strings.Join(by, "; ")
	d.decideLocked(o, v)
	return nil
}

// dropLost removes the approvals of an open question by people who may not approve any more: their credential has
// ended, or they have lost a role.
func (d *Desk) dropLost(id string) {
	d.mu.Lock()
	var agreed []agreement
	if o := d.open[id]; o != nil {
		agreed = slices.Clone(o.agreed)
	}
	d.mu.Unlock()
	for _, one := range agreed {
		if one.approver == nil || d.opts.InForce(*one.approver) {
			continue
		}
		d.mu.Lock()
		if o := d.open[id]; o != nil && !o.decided {
			o.agreed = slices.DeleteFunc(o.agreed, func(a agreement) bool { return a.approver == one.approver })
		}
		d.mu.Unlock()
	}
}

// answers returns a function that reports whether the person can answer for the owner or in a role.
func (o *openQuestion) answers(p Person) func(asked string) bool {
	return func(asked string) bool {
		if asked == policies.Owner {
			return p.Owner || o.escalated != "" && slices.Contains(p.Roles, o.escalated)
		}
		return slices.Contains(p.Roles, asked)
	}
}

// asking returns who asks, with the roles that the question asks.
func (o *openQuestion) asking() Asking {
	asking := o.question.Asking
	asking.Roles = strings.Join(o.posted().Roles(), " ")
	return asking
}

// missing describes who still has to approve a question; empty if nobody has.
func (o *openQuestion) missing() string {
	g := o.question.Grounds
	var lacks []string
	for _, asked := range g.asks() {
		if !slices.ContainsFunc(o.agreed, func(a agreement) bool { return o.answers(a.person)(asked) }) {
			lacks = append(lacks, asked)
		}
	}
	switch more := g.People - len(o.agreed); {
	case len(lacks) > 0:
		return strings.Join(lacks, " and ")
	case more == 1:
		return "another person"
	case more > 1:
		return fmt.Sprintf("%d other persons", more)
	}
	return ""
}

// progress describes the approvals that an open question has; empty if it has none or is decided.
func (o *openQuestion) progress() string {
	if len(o.agreed) == 0 || o.decided {
		return ""
	}
	var by []string
	for _, a := range o.agreed {
		by = append(by, a.by)
	}
	return "approved by " + strings.Join(by, "; ") + ", waits for " + o.missing()
}
