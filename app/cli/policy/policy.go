// Package policy has the verbs that check policies and confirm configurations.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/cli/servers"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// Verbs are the verbs of airlock policy.
type Verbs struct {
	Check   policyCheckVerb   `cmd:"" help:"Check the policies and settings against the tools that there are."`
	Test    policyTestVerb    `cmd:"" help:"Run files of cases with expected decisions."`
	Explain policyExplainVerb `cmd:"" help:"Say what would happen to a call, and which rule decides."`
	Propose policyProposeVerb `cmd:"" help:"Propose a rule that approves calls like one in advance, with the calls that it would have covered."`
	Schema  policySchemaVerb  `cmd:"" help:"Print the Cedar schema of what policies can be about, for editors and for Cedar's own tools."`
}

// readRules reads the rules. It needs the servers' tools, because rules refer to them.
func readRules(ctx context.Context, flag verb.ToolsFlags, s *verb.Streams) (admission.RuleSet, error) {
	c, snapshot, err := flag.OpenTools(ctx, s.Err)
	if err != nil {
		return admission.RuleSet{}, err
	}
	return rules.ReadRuleSet(c, snapshot)
}

type policyCheckVerb struct {
	verb.ToolsFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints each mistake and each warning with its file and line. It fails if there is a mistake.
func (v *policyCheckVerb) Run(ctx context.Context, s *verb.Streams) error {
	r, err := readRules(ctx, v.ToolsFlags, s)
	if err != nil {
		return err
	}
	servers := r.Snapshot.Servers()
	problems := slices.Concat([]policies.Problem{}, policies.Check(r.Files, servers, r.Roles...),
		policies.CheckOperator(r.Operator, servers))
	for i := range problems {
		problems[i].File, problems[i].Text = verb.Clean(problems[i].File), verb.Clean(problems[i].Text)
	}
	if v.JSON {
		err = verb.PrintLine(s.Out, map[string]any{"problems": problems})
	} else if len(problems) == 0 {
		_, err = fmt.Fprintf(s.Out, "no problem in %s for the %s of %s\n",
			verb.Counted(len(r.Files), "policy file"), verb.Counted(r.Snapshot.Len(), "tool"),
			verb.Counted(len(servers), "server"))
	}
	if err != nil || len(problems) == 0 {
		return err
	}
	for _, problem := range problems {
		fmt.Fprintf(s.Err, "airlock: %v\n", problem)
	}
	if !slices.ContainsFunc(problems, func(p policies.Problem) bool { return !p.Warning }) {
		return nil
	}
	return verb.ExitError(verb.ExitUsage)
}

type policyTestVerb struct {
	verb.ConfigFlag
	JSON  bool     `name:"json" help:"Print JSON."`
	Files []string `arg:"" name:"cases" help:"YAML files with a key cases."`
}

// failedCase is a case whose decision differs from the expected one.
type failedCase struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Problem string `json:"problem"`
}

// Run decides each case and fails if a decision differs from the expected one. The tools of a case
// need not exist, because a case can contain their claims.
func (v *policyTestVerb) Run(s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	files, err := rules.PolicyFiles(c)
	if err != nil {
		return err
	}
	engine, err := policies.Load(files...)
	if err != nil {
		return err
	}
	engine = engine.WithRoles(rules.RoleNames(c))
	total, failed := 0, []failedCase{}
	for _, path := range v.Files {
		source, err := os.ReadFile(path)
		if err != nil {
			return verb.Usage(fmt.Sprintf("the case file %q cannot be read: %v", path, errors.Unwrap(err)),
				"name a YAML file with a key cases")
		}
		cases, err := policies.ParseCases(path, source)
		if err != nil {
			return verb.Usage(err.Error(), "docs/policies.md shows a case file")
		}
		for _, one := range cases {
			total++
			if _, err := one.Run(engine, catalog.Tool{ServerID: one.Server, Name: one.Tool}); err != nil {
				failed = append(failed, failedCase{verb.Clean(path), verb.Clean(one.Name), verb.Clean(err.Error())})
			}
		}
	}
	if v.JSON {
		return errors.Join(verb.PrintLine(s.Out, map[string]any{"cases": total, "failed": failed}),
			verb.FailIf(len(failed) > 0))
	}
	for _, f := range failed {
		fmt.Fprintf(s.Out, "%s  %s: %s: %s\n", verb.PainterFor(s.Out).Paint(verb.Red, "FAIL"), f.File, f.Name,
			f.Problem)
	}
	fmt.Fprintf(s.Out, "%d cases, %d failed\n", total, len(failed))
	return verb.FailIf(len(failed) > 0)
}

type policyExplainVerb struct {
	verb.ToolsFlags
	JSON      bool     `name:"json" help:"Print JSON."`
	Connect   string   `placeholder:"NAME:PORT" help:"Explain a connection to this host instead: of code, or of the contained server SERVER."`
	For       string   `placeholder:"PRINCIPAL" help:"Who calls, as the audit log names them; by default you."`
	Group     []string `sep:"none" placeholder:"NAME" help:"A group that the caller is in. It can be given several times."`
	Server    string   `arg:"" optional:"" help:"The server's ID."`
	Tool      string   `arg:"" optional:"" help:"The tool's name."`
	Arguments string   `arg:"" optional:"" help:"The call's arguments, as JSON. Left out, none are given and none are missed."`
}

// Run decides one call as if it were the first of its session.
func (v *policyExplainVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Connect != "" {
		return v.connect(s)
	}
	if v.Server == "" || v.Tool == "" {
		return verb.Usage("SERVER and TOOL are both required",
			"airlock policy explain SERVER TOOL, or airlock policy explain --connect NAME:PORT")
	}
	r, err := readRules(ctx, v.ToolsFlags, s)
	if err != nil {
		return err
	}
	who := caller.Caller{Principal: cmp.Or(v.For, setup.Principal()), Facts: caller.Facts{Groups: v.Group}}
	explained, err := r.Explain(who, v.Server, v.Tool, v.Arguments)
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &unknown), errors.As(err, &withheld):
		return servers.NoTool(err)
	case errors.Is(err, admission.ErrNoObject):
		return verb.Usage(err.Error(), `airlock policy explain SERVER TOOL '{"path": "/tmp"}'`)
	case err != nil:
		return err
	}
	request, decided, cure, unfit := explained.Request, explained.Decision, explained.Cure, explained.Unfit
	if v.JSON {
		err = verb.PrintLine(s.Out, explainedJSON(request, decided, unfit))
	} else if err = policies.Explain(verb.Cleaned(s.Out), request, decided, cure); err == nil && unfit != nil {
		_, err = fmt.Fprintf(
			verb.Cleaned(s.Out),
			"policies are not asked about these arguments: the call ends in ValidationError, because %v\n", unfit)
	}
	switch {
	case err != nil:
		return err
	case unfit != nil:
		return verb.ExitError(verb.ExitFailed)
	case !decided.Allow:
		return verb.ExitError(verb.ExitRefused)
	}
	return nil
}

// explainedCall is the output of --json.
type explainedCall struct {
	ServerID string   `json:"server_id"`
	ToolName string   `json:"tool_name"`
	Allow    bool     `json:"allow"`
	Approve  []string `json:"approve"` // who must approve the call
	Risk     string   `json:"risk"`
	Flags    []string `json:"flags"`
	Rules    []string `json:"rules"`   // the rules that decided, with file and line
	Reasons  []string `json:"reasons"` // why it is denied
	Errors   []string `json:"errors"`  // rules that could not be evaluated
	Unfit    string   `json:"validation_error,omitempty"`
}

func explainedJSON(r policies.Request, d policies.Decision, unfit error) explainedCall {
	call := explainedCall{
		ServerID: r.Tool.ServerID, ToolName: r.Tool.Name, Allow: d.Allow, Risk: d.Risk.String(), Flags: []string{},
		Rules:   []string{},
		Approve: verb.CleanAll(d.Approve), Reasons: verb.CleanAll(d.Reasons), Errors: verb.CleanAll(d.Errors),
	}
	for _, flag := range r.Settings.Flags {
		call.Flags = append(call.Flags, flag.String())
	}
	for _, rule := range d.Rules {
		call.Rules = append(call.Rules, verb.Clean(rule.String()))
	}
	if unfit != nil {
		call.Unfit = verb.Clean(unfit.Error())
	}
	return call
}

type policySchemaVerb struct {
	verb.ToolsFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the schema of the tools that the servers offer now.
func (v *policySchemaVerb) Run(ctx context.Context, s *verb.Streams) error {
	snapshot, err := v.Snapshot(ctx, s.Err)
	if err != nil {
		return err
	}
	text := policies.CedarSchema(snapshot.Servers())
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"schema": string(text)})
	}
	_, err = s.Out.Write(text)
	return err
}
