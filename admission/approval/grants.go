package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// Grant is a Yes that covers further calls.
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

	key       string          // see keyOf
	approvers []caller.Caller // see Verdict.Approvers
	extent    Extent
}

// Object returns the grant as an object that callers reach. Whoever gave it reaches it as the person whose calls it
// covers does.
func (g Grant) Object() caller.Object {
	o := g.Asking.Object(nil)
	for _, approver := range g.approvers {
		o.Givers = append(o.Givers, approver.Key())
	}
	return o
}

// MayEnd reports whether a caller may see and withdraw the grant.
func (g Grant) MayEnd(who caller.Caller) bool {
	return who.May(caller.People, caller.Change, g.Object())
}

// keyOf returns the key of the grants with a reach that cover a question. Such a question has the same caller, tool,
// definition and policies, and is asked for the same reasons.
func keyOf(q Question, reach Reach) string {
	session, run, code := q.SessionID, q.RunID, q.CodeHash
	if reach > ThisRun {
		run = ""
		if q.ServerID != "" { // a run itself is approved for its own code alone
			code = ""
		}
	}
	if reach > ThisSession {
		session = ""
	}
	grounds := strings.Join(slices.Concat([]string{q.Risk}, q.Flags, q.Rules), "\n")
	text, _ := json.Marshal([]string{strconv.Itoa(int(reach)), q.Principal, q.Issuer, q.CallerKind, q.Profile, session,
		run, q.ServerID, q.ToolName, q.DefinitionDigest, code, q.PolicyVersion, q.Whom(), grounds}) // strings: no error
	return canon.Digest(text)
}

// isDestructive reports whether the policies call the question's call destructive.
func (q Question) isDestructive() bool {
	return q.Risk == policies.RiskCritical.String() || q.Risk == policies.RiskCritical.Level()
}

// grantOf returns the grant that a verdict on a question gives, if it gives one.
func (d *Desk) grantOf(q Question, v Verdict) (g Grant, ok bool) {
	if v.Answer != Yes || v.For.Reach == ThisCall || q.Elicitation != nil || q.Allows(v.For) != nil {
		return Grant{}, false
	}
	now := d.opts.Now()
	g = Grant{ID: telemetry.NewID("grant"), Given: now, For: v.For.String(), By: v.By, Asking: q.Asking,
		ServerID: q.ServerID, ToolName: q.ToolName, key: keyOf(q, v.For.Reach), approvers: v.Approvers, extent: v.For}
	switch v.For.Reach {
	case ThisSession:
		g.Until = now.Add(sessionLifetime)
	case UntilDate:
		g.Until = v.For.Until
	default:
		g.Until = now.Add(runLifetime)
	}
	return g, true
}

// coverLocked answers the open questions of this process that a new grant covers, and returns their number.
func (d *Desk) coverLocked(g Grant) (answered int) {
	for _, other := range d.open {
		if g.covers(other.question) && d.decideLocked(other, g.verdict()) {
			answered++
		}
	}
	return answered
}

func (g Grant) covers(q Question) bool {
	return q.Elicitation == nil && keyOf(q, g.extent.Reach) == g.key && q.Allows(g.extent) == nil
}

// verdict returns the verdict on a call that the grant covers.
func (g Grant) verdict() Verdict {
	by := "grant for this run"
	if g.extent.Reach > ThisRun {
		by = "grant " + g.extent.Describe() + " of " + g.By
	}
	return Verdict{Answer: Yes, By: by, ByGrant: true, Approvers: g.approvers}
}

// store returns the store of the grants.
func (d *Desk) store() grantStore {
	if s := d.shared.Load(); s != nil {
		return grantRows{s.db}
	}
	return &d.grants
}

// granted reports whether a person has extended an earlier Yes to this call. If the database of the cluster does not
// answer, the call is asked about.
func (d *Desk) granted(ctx context.Context, q *Question) (Verdict, bool) {
	reading, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	v, ok, err := d.coveredBy(reading, d.store(), q)
	if err != nil && ctx.Err() == nil {
		d.opts.Logger.WarnContext(ctx, "the approvals that cover further calls could not be read",
			slog.Any(telemetry.KeyError, err))
	}
	return v, ok && err == nil
}

func (d *Desk) coveredBy(ctx context.Context, grants grantStore, q *Question) (Verdict, bool, error) {
	found, err := grants.find(ctx, d.opts.Now(), keyOf(*q, ThisRun), keyOf(*q, ThisSession), keyOf(*q, UntilDate))
	found = slices.DeleteFunc(found, func(g Grant) bool { return !g.covers(*q) })
	if err != nil || len(found) == 0 {
		return Verdict{}, false, err
	}
	g := slices.MinFunc(found, func(a, b Grant) int { return cmp.Compare(a.extent.Reach, b.extent.Reach) })
	// a grant ends with the credential of an approver
	if slices.ContainsFunc(g.approvers, func(who caller.Caller) bool { return !d.opts.InForce(who) }) {
		_, err := grants.remove(ctx, g.ID)
		return Verdict{}, false, err
	}
	inForce, err := grants.use(ctx, g.ID, 1) // it may have been withdrawn meanwhile
	return g.verdict(), inForce, err
}

// Grants returns the grants in force, in a cluster those of all nodes, oldest first.
func (d *Desk) Grants(ctx context.Context) ([]Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := d.store().find(ctx, d.opts.Now())
	slices.SortFunc(list, func(a, b Grant) int { return cmp.Or(a.Given.Compare(b.Given), cmp.Compare(a.ID, b.ID)) })
	return list, err
}

// Withdraw ends a grant in the name of a person, in a cluster at all nodes. It reports whether there was one that the
// person may end. Calls that it has covered go on.
func (d *Desk) Withdraw(ctx context.Context, id, by string, may func(Grant) bool) (bool, error) {
	list, err := d.Grants(ctx)
	i := slices.IndexFunc(list, func(g Grant) bool { return g.ID == id && may(g) })
	if err != nil || i < 0 {
		return false, err
	}
	if removed, err := d.store().remove(ctx, id); err != nil || !removed {
		return false, err
	}
	if d.opts.OnWithdraw != nil {
		d.opts.OnWithdraw(ctx, list[i], by)
	}
	return true, nil
}
