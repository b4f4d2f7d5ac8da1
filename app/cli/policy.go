package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

type policyVerbs struct {
	Check   policyCheckVerb   `cmd:"" help:"Check the policies and settings against the tools that there are."`
	Test    policyTestVerb    `cmd:"" help:"Run files of cases with expected decisions."`
	Explain policyExplainVerb `cmd:"" help:"Say what would happen to a call, and which rule decides."`
	Schema  policySchemaVerb  `cmd:"" help:"Print the Cedar schema of what policies can be about, for editors and for Cedar's own tools."`
}

// readRules reads the rules. It needs the servers' tools, because rules refer to them.
func readRules(ctx context.Context, flag toolsFlags, s *streams) (system.RuleSet, error) {
	c, snapshot, err := flag.openTools(ctx, s.err)
	if err != nil {
		return system.RuleSet{}, err
	}
	return system.ReadRuleSet(c, snapshot)
}

type policyCheckVerb struct {
	toolsFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints each mistake with its file and line. It fails if there is a mistake.
func (v *policyCheckVerb) Run(ctx context.Context, s *streams) error {
	r, err := readRules(ctx, v.toolsFlags, s)
	if err != nil {
		return err
	}
	servers := r.Snapshot.Servers()
	problems := slices.Concat([]policies.Problem{}, policies.Check(r.Files, servers), policies.CheckOperator(r.Operator, servers))
	for i := range problems {
		problems[i].File, problems[i].Text = clean(problems[i].File), clean(problems[i].Text)
	}
	if v.JSON {
		err = printLine(s.out, map[string]any{"problems": problems})
	} else if len(problems) == 0 {
		_, err = fmt.Fprintf(s.out, "no problem in %s for the %s of %s\n",
			counted(len(r.Files), "policy file"), counted(r.Snapshot.Len(), "tool"), counted(len(servers), "server"))
	}
	if err != nil || len(problems) == 0 {
		return err
	}
	for _, problem := range problems {
		fmt.Fprintf(s.err, "airlock: %v\n", problem)
	}
	return exitError(ExitUsage)
}

type policyTestVerb struct {
	configFlag
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
func (v *policyTestVerb) Run(s *streams) error {
	c, err := v.load(s.err)
	if err != nil {
		return err
	}
	files, err := system.PolicyFiles(c)
	if err != nil {
		return err
	}
	engine, err := policies.Load(files...)
	if err != nil {
		return err
	}
	total, failed := 0, []failedCase{}
	for _, path := range v.Files {
		source, err := os.ReadFile(path)
		if err != nil {
			return &usageError{fmt.Sprintf("the case file %q cannot be read: %v", path, errors.Unwrap(err)), "name a YAML file with a key cases"}
		}
		cases, err := policies.ParseCases(path, source)
		if err != nil {
			return &usageError{err.Error(), "docs/policies.md shows a case file"}
		}
		for _, one := range cases {
			total++
			if _, err := one.Run(engine, catalog.Tool{ServerID: one.Server, Name: one.Tool}); err != nil {
				failed = append(failed, failedCase{clean(path), clean(one.Name), clean(err.Error())})
			}
		}
	}
	if v.JSON {
		return errors.Join(printLine(s.out, map[string]any{"cases": total, "failed": failed}), failIf(len(failed) > 0))
	}
	for _, f := range failed {
		fmt.Fprintf(s.out, "%s  %s: %s: %s\n", painterFor(s.out).paint(red, "FAIL"), f.File, f.Name, f.Problem)
	}
	fmt.Fprintf(s.out, "%d cases, %d failed\n", total, len(failed))
	return failIf(len(failed) > 0)
}

type policyExplainVerb struct {
	toolsFlags
	JSON      bool   `name:"json" help:"Print JSON."`
	Server    string `arg:"" help:"The server's ID."`
	Tool      string `arg:"" help:"The tool's name."`
	Arguments string `arg:"" optional:"" help:"The call's arguments, as JSON. Left out, none are given and none are missed."`
}

// Run decides one call as if it were the first of its session.
func (v *policyExplainVerb) Run(ctx context.Context, s *streams) error {
	r, err := readRules(ctx, v.toolsFlags, s)
	if err != nil {
		return err
	}
	explained, err := r.Explain(system.Principal(), v.Server, v.Tool, v.Arguments)
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &unknown), errors.As(err, &withheld):
		return noTool(err)
	case errors.Is(err, system.ErrNoObject):
		return &usageError{err.Error(), `airlock policy explain SERVER TOOL '{"path": "/tmp"}'`}
	case err != nil:
		return err
	}
	request, decided, unfit := explained.Request, explained.Decision, explained.Unfit
	if v.JSON {
		err = printLine(s.out, explainedJSON(request, decided, unfit))
	} else if err = policies.Explain(cleaned(s.out), request, decided); err == nil && unfit != nil {
		_, err = fmt.Fprintf(cleaned(s.out), "policies are not asked about these arguments: the call ends in ValidationError, because %v\n", unfit)
	}
	switch {
	case err != nil:
		return err
	case unfit != nil:
		return exitError(ExitFailed)
	case !decided.Allow:
		return exitError(ExitRefused)
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
		ServerID: r.Tool.ServerID, ToolName: r.Tool.Name, Allow: d.Allow, Risk: d.Risk.String(), Flags: []string{}, Rules: []string{},
		Approve: cleanAll(d.Approve), Reasons: cleanAll(d.Reasons), Errors: cleanAll(d.Errors),
	}
	for _, flag := range r.Settings.Flags {
		call.Flags = append(call.Flags, flag.String())
	}
	for _, rule := range d.Rules {
		call.Rules = append(call.Rules, clean(rule.String()))
	}
	if unfit != nil {
		call.Unfit = clean(unfit.Error())
	}
	return call
}

type policySchemaVerb struct {
	toolsFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the schema of the tools that the servers offer now.
func (v *policySchemaVerb) Run(ctx context.Context, s *streams) error {
	snapshot, err := v.snapshot(ctx, s.err)
	if err != nil {
		return err
	}
	text := policies.CedarSchema(snapshot.Servers())
	if v.JSON {
		return printLine(s.out, map[string]any{"schema": string(text)})
	}
	_, err = s.out.Write(text)
	return err
}
