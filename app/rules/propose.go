package rules

import (
	"maps"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// proposalPeriod is the period of the past that a proposed rule is compared with.
const proposalPeriod = "7d"

// Propose returns a rule for calls like the one of a question, see admission.RuleSet.Propose, and since when the past
// was compared. Examples are only included if the person may see the run of the question.
func (r *Rules) Propose(by caller.Caller, q approval.Question, free []string) (admission.Proposal, time.Time, error) {
	period, err := audit.ParsePeriod(proposalPeriod, "", time.Now())
	if err != nil {
		return admission.Proposal{}, time.Time{}, err
	}
	set, err := r.RuleSet(by)
	if err != nil {
		return admission.Proposal{}, period.Since, err
	}
	p, err := set.Propose(caller.Caller{Principal: q.Principal, Issuer: q.Issuer}, q.ServerID, q.ToolName,
		string(q.Arguments), by.Name(), free, admission.Past{Log: r.opts.Directories.Audit,
			Keys: r.opts.Directories.Keys, Period: period, Clean: r.opts.Clean})
	// A person with a role may answer this question, and need not see other calls.
	if !by.May(caller.People, caller.See, caller.Object{Kind: caller.Run, Owner: q.Owner()}) {
		p.Coverage.Examples = []admission.Example{}
	}
	return p, period.Since, err
}

// Coverage returns what an approval of the question's tool with any arguments would have covered.
func (r *Rules) Coverage(by caller.Caller, q approval.Question) (admission.Coverage, error) {
	p, _, err := r.Propose(by, q, ArgumentNames(q))
	return p.Coverage, err
}

// ArgumentNames returns the names of the arguments of a call.
func ArgumentNames(q approval.Question) []string {
	decoded, _ := strictjson.Value(q.Arguments) // invalid arguments were refused before
	arguments, _ := decoded.(map[string]any)
	return slices.Sorted(maps.Keys(arguments))
}
