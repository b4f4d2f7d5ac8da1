package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/servers"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/store"
)

type policyProposeVerb struct {
	verb.ToolsFlags
	Any   []string `sep:"none" placeholder:"NAME" help:"An argument that may have any value. It can be given several times."`
	Since string   `default:"7d" placeholder:"TIME" help:"Compare the rule with the calls since: 7d, 24h, 2026-11-20."`
	JSON  bool     `name:"json" help:"Print JSON."`
	ID    string   `arg:"" help:"An open question, as approvals list names it, or a call, as audit report --format csv does."`
}

// pastCall is the call that a rule is proposed for.
type pastCall struct {
	who       caller.Caller
	server    string
	tool      string
	arguments json.RawMessage
}

// Run prints a rule in Cedar for calls like one that a person was asked about, and what it would have
// covered.
func (v *policyProposeVerb) Run(ctx context.Context, s *verb.Streams) error {
	c, snapshot, err := v.OpenTools(ctx, s.Err)
	if err != nil {
		return err
	}
	rules, err := rules.ReadRuleSet(c, snapshot)
	if err != nil {
		return err
	}
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	past := admission.Past{Log: directories.Audit, Keys: directories.Keys, Clean: credentials.Printed().Text}
	if past.Period, err = audit.ParsePeriod(v.Since, "", time.Now()); err != nil {
		return verb.Usage(err.Error(), "airlock policy propose ID --since 7d")
	}
	call, err := v.find(past)
	if err != nil {
		return err
	}
	p, err := rules.Propose(call.who, call.server, call.tool, string(call.arguments), setup.Principal(), v.Any, past)
	if err != nil {
		return proposalError(err)
	}
	if v.JSON {
		return verb.PrintLine(s.Out, p)
	}
	return writeProposal(s, p, v.Since)
}

// find returns the question or call with the ID.
func (v *policyProposeVerb) find(past admission.Past) (call pastCall, err error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return call, err
	}
	q, err := approval.Find(store.Approvals(home), v.ID)
	if err == nil {
		if q.Elicitation != nil {
			return call, verb.WithHint(errors.New("a server asks this question, so no rule can answer it"),
				"airlock approvals show "+q.ID, verb.ExitFailed)
		}
		who := caller.Caller{Principal: q.Principal, Issuer: q.Issuer}
		return pastCall{who, q.ServerID, q.ToolName, q.Arguments}, nil
	}
	err = audit.EachPast(past.Log, past.Keys, audit.ReportOptions{CallID: v.ID},
		func(r audit.Record, values json.RawMessage) error {
			call = pastCall{caller.Caller{Principal: r.Principal, Issuer: r.Issuer}, r.ServerID, r.ToolName, values}
			return nil
		})
	switch {
	case err != nil && !errors.Is(err, audit.ErrNoArgumentsKey) && !errors.Is(err, audit.ErrNoLog):
		return call, err
	case call.tool == "":
		return call, verb.WithHint(fmt.Errorf("there is no open question and no call %q", v.ID),
			"airlock approvals list, or airlock audit report --format csv", verb.ExitFailed)
	case call.arguments == nil:
		return call, verb.WithHint(fmt.Errorf("the arguments of the call %q were not kept", v.ID),
			"use a newer call (audit.keepArguments says for how long arguments are kept)", verb.ExitFailed)
	}
	return call, nil
}

// proposalError adds advice to an error of RuleSet.Propose.
func proposalError(err error) error {
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	if errors.As(err, &unknown) || errors.As(err, &withheld) {
		return servers.NoTool(err)
	}
	return verb.WithHint(err, "name an argument of the call with --any NAME, or write the rule yourself "+
		"(docs/policies.md)", verb.ExitFailed)
}

// writeProposal writes the rule, and what it means as comments, so that the output can be added to a
// policy file.
func writeProposal(s *verb.Streams, p admission.Proposal, since string) error {
	out := verb.Cleaned(s.Out)
	answers := []string{}
	for _, answer := range slices.Sorted(maps.Keys(p.Coverage.Answers)) {
		answers = append(answers, fmt.Sprintf("%d %s", p.Coverage.Answers[answer],
			strings.ToLower(answer)))
	}
	fmt.Fprintf(out, "// Since %s it would have covered %d of %s of this tool. People were asked: %s.\n", since,
		p.Coverage.Covered, verb.Counted(p.Coverage.Calls, "call"), cmp.Or(strings.Join(answers, ", "), "never"))
	if p.Coverage.Unknown > 0 {
		fmt.Fprintf(out, "// It is not known for %d, because their arguments were not kept.\n", p.Coverage.Unknown)
	}
	if len(p.Free) > 0 {
		fmt.Fprintf(out, "// Any value: %q.\n", p.Free) // quoted: a line break in a name would end the comment
	}
	for _, e := range p.Coverage.Examples {
		fmt.Fprintf(out, "// %s %s %s\n", e.Time, cmp.Or(e.Approval, "not asked"),
			verb.OneLine(e.Arguments, 100))
	}
	if _, err := io.WriteString(out, p.Rule); err != nil {
		return err
	}
	fmt.Fprintln(s.Err, "airlock: to use it, add it to a file in policies of the configuration, then: airlock trust")
	return nil
}
