package approval

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// Grant is a Yes that covers further calls. It is kept in memory, because every process of the user could write it
// to a file.
type Grant struct {
	ID    string    `json:"id"` // grant_…
	Given time.Time `json:"given"`
	Until time.Time `json:"until"`
	For   string    `json:"for"` // as Extent.String returns it
	By    string    `json:"by"`
	Used  int       `json:"used"` // how many calls it has covered
	// Question is the question that was answered, without its code and its arguments.
	Asking
	ServerID string `json:"server_id"`
	ToolName string `json:"tool_name"`

	key       grantKey
	approvers []caller.Caller // see Verdict.Approvers
	extent    Extent
}

// maxGrants is the maximum number of grants of a desk. Beyond it, the one that ends first is removed.
const maxGrants = 1000

// grantKey identifies the calls that a grant covers. All of them are asked about for the same reasons.
type grantKey struct {
	principal, issuer, kind, profile, session, run, server, tool, definition, code, policy, asks, grounds string
}

// keyOf returns the key of the grants with a reach that cover a question.
func keyOf(q Question, reach Reach) grantKey {
	key := grantKey{principal: q.Principal, issuer: q.Issuer, kind: q.CallerKind, profile: q.Profile,
		session: q.SessionID, run: q.RunID, server: q.ServerID, tool: q.ToolName, definition: q.DefinitionDigest,
		code: q.CodeHash, policy: q.PolicyVersion, asks: q.Whom(),
		grounds: strings.Join(slices.Concat([]string{q.Risk}, q.Flags, q.Rules), "\n")}
	if reach > ThisRun {
		key.run = ""
		if q.ServerID != "" { // a run itself is approved for its own code alone
			key.code = ""
		}
	}
	if reach > ThisSession {
		key.session = ""
	}
	return key
}

// isDestructive reports whether the policies call the question's call destructive.
func (q Question) isDestructive() bool {
	return q.Risk == policies.RiskCritical.String() || q.Risk == policies.RiskCritical.Level()
}

// extendLocked makes a grant of the Yes to a question, and answers the open questions that it covers.
func (d *Desk) extendLocked(q Question, v Verdict) {
	now := d.opts.Now()
	g := &Grant{ID: telemetry.NewID("grant"), Given: now, For: v.For.String(), By: v.By, Asking: q.Asking,
		ServerID: q.ServerID, ToolName: q.ToolName, key: keyOf(q, v.For.Reach), approvers: v.Approvers, extent: v.For}
	switch v.For.Reach {
	case ThisSession:
		g.Until = now.Add(sessionLifetime)
	case UntilDate:
		g.Until = v.For.Until
	default:
		g.Until = now.Add(runLifetime)
	}
	d.grants = slices.DeleteFunc(d.grants, func(other *Grant) bool {
		return other.key == g.key && other.extent.Reach == g.extent.Reach
	})
	d.grants = append(d.grants, g)
	if len(d.grants) > maxGrants {
		first := slices.MinFunc(d.grants, func(a, b *Grant) int { return a.Until.Compare(b.Until) })
		d.grants = slices.DeleteFunc(d.grants, func(other *Grant) bool { return other == first })
	}
	for _, other := range d.open {
		if g.covers(other.question) && d.decideLocked(other, g.verdict()) {
			g.Used++
		}
	}
}

func (g *Grant) covers(q Question) bool {
	return q.Elicitation == nil && keyOf(q, g.extent.Reach) == g.key && q.Allows(g.extent) == nil
}

// verdict returns the verdict on a call that the grant covers.
func (g *Grant) verdict() Verdict {
	by := "grant for this run"
	if g.extent.Reach > ThisRun {
		by = "grant " + g.extent.Describe() + " of " + g.By
	}
	return Verdict{Answer: Yes, By: by, ByGrant: true, Approvers: g.approvers}
}

// inForceLocked returns the grants that have not ended, and removes the others.
func (d *Desk) inForceLocked() []*Grant {
	now := d.opts.Now()
	d.grants = slices.DeleteFunc(d.grants, func(g *Grant) bool { return !now.Before(g.Until) })
	return d.grants
}

// granted reports whether a person has extended an earlier Yes to this call.
func (d *Desk) granted(q *Question) (Verdict, bool) {
	d.mu.Lock()
	var found *Grant
	for _, g := range d.inForceLocked() {
		if g.covers(*q) && (found == nil || g.extent.Reach < found.extent.Reach) {
			found = g
		}
	}
	d.mu.Unlock()
	if found == nil {
		return Verdict{}, false
	}
	// a grant ends with the credential of an approver
	lost := slices.ContainsFunc(found.approvers, func(who caller.Caller) bool { return !d.opts.InForce(who) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost || !slices.Contains(d.grants, found) { // withdrawn meanwhile
		d.grants = slices.DeleteFunc(d.grants, func(g *Grant) bool { return g == found })
		return Verdict{}, false
	}
	found.Used++
	return found.verdict(), true
}

// Grants returns the grants in force, oldest first.
func (d *Desk) Grants() []Grant {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []Grant{}
	for _, g := range d.inForceLocked() {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Grant) int { return cmp.Or(a.Given.Compare(b.Given), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Withdraw ends a grant in the name of a person. It reports whether there was one. Calls that it has covered go on.
func (d *Desk) Withdraw(ctx context.Context, id, by string) bool {
	d.mu.Lock()
	i := slices.IndexFunc(d.inForceLocked(), func(g *Grant) bool { return g.ID == id })
	if i < 0 {
		d.mu.Unlock()
		return false
	}
	g := *d.grants[i]
	d.grants = slices.Delete(d.grants, i, i+1)
	d.mu.Unlock()
	if d.opts.OnWithdraw != nil {
		d.opts.OnWithdraw(ctx, g, by)
	}
	return true
}
