package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/policies"
)

// limit counts the request against the rate of the agent's principal.
func (e *evaluation) limit(ctx context.Context) error {
	if e.opts.Limiter == nil {
		return nil
	}
	err := e.opts.Limiter.Allow(ctx, e.agent.PrincipalID)
	switch {
	case err == nil, errors.Is(err, ErrState):
		return err
	case errors.Is(err, ErrTooOften):
		return refuse(CodeRate, "too many requests: wait before the next one")
	}
	e.logger.WarnContext(ctx, "the rate limiter cannot tell, and its requests are denied", "error", err)
	return refuse(CodeRateUnknown, "the rate limiter is unavailable, so all requests are denied")
}

// judged holds the assessed risk of an act and the decision of the rules, for one state of the
// agent.
type judged struct {
	risk      risk.Assessment
	described policies.Act // the act as seen by the rules
	unknown   *Error       // the permissions name neither the action nor the tool, or named policies are violated
	found     execution    // in the parameters of an action of the kernel
	rules     policies.Decision
}

// assess determines the risk of the act and evaluates the rules.
func (e *evaluation) assess(ctx context.Context) (err error) {
	switch e.act.Kind {
	case KernelAction:
		if err := e.assessExecution(ctx); err != nil {
			return err
		}
	case Run:
		e.risk = runRisk
	default:
		subject, err := e.subject()
		if err != nil {
			return err
		}
		if e.risk, err = risk.Assess(ctx, subject); err != nil {
			return err
		}
	}
	e.judge()
	return nil
}

// judge evaluates the rules for the current state of the agent.
func (e *evaluation) judge() {
	if e.act.Kind == KernelAction {
		e.judgeExecution()
		return
	}
	e.describe()
	e.rules = e.opts.Rules.DecideAct(e.described)
}

// reload reads the agent in a transaction. If it has changed since the act was judged, the act is
// judged again.
func (e *evaluation) reload(ctx context.Context, tx database.Tx) error {
	now, changed, err := e.opts.Agents.Reload(ctx, tx, e.agent)
	if err != nil || !changed {
		return err
	}
	e.agent = now
	if !e.isBuiltIn() {
		e.judge()
	}
	return nil
}

// runRisk is the risk of a run. Code in a sandbox can only make calls, and each call is an act with its own risk
// (docs/design/0014-agents-and-their-real-calls.md).
var runRisk = risk.Assessment{Meaning: risk.Meaning{Risk: policies.RiskLow, Engine: "code",
	Category: policies.ActOther}, Named: true}

// subject returns what the risk of a call or an announcement is derived from.
func (e *evaluation) subject() (risk.Subject, error) {
	if e.act.Kind == Call {
		arguments, err := strictjson.Value(e.act.Arguments)
		if err != nil {
			return risk.Subject{}, refuse(CodeAction, "the arguments: %s", err)
		}
		return risk.Subject{Name: e.act.Request.Tool.Name,
			Tools: []risk.Declared{{Risk: e.policies.Risk, Schema: e.act.Request.Tool.InputSchema,
				SQL: e.act.Request.Settings.SQL}},
			Call: true, Arguments: arguments}, nil
	}
	_, tool := splitType(e.action.Type)
	of := risk.Subject{Name: tool}
	if e.opts.Tools != nil {
		of.Tools = e.opts.Tools(e.action.Type)
	}
	parameters, err := strictjson.Value(e.action.Parameters)
	if err != nil {
		return of, fmt.Errorf("reading the parameters of an action: %w", err)
	}
	arguments, _ := parameters.(map[string]any)
	if arguments == nil {
		arguments = map[string]any{}
	}
	// A tool would get the members of the action beside its parameters.
	beside := map[string]any{}
	for name, text := range map[string]string{"query": e.action.Query, "code": e.action.Code,
		"target": e.action.Target} {
		if text != "" {
			beside[name] = text
		}
	}
	of.Arguments = []any{arguments, beside}
	return of, nil
}

// describe describes the act to the rules.
func (e *evaluation) describe() {
	a, names := e.agent, e.act.names()
	if e.isAnnounced() {
		names = namesOf(splitType(e.action.Type))
	}
	act := policies.Act{
		AgentID: a.ID, Trust: a.Trust, Active: a.Status == agents.Active, Engines: a.Permissions.AllowedEngines,
		Type: e.action.Type, Risk: e.risk.Risk, Engine: e.risk.Engine, Category: e.risk.Category,
		Blocked: isListed(a.Permissions.BlockedTools, names),
	}
	if act.Category == policies.ActOther && isListed(a.Permissions.AllowedTools, names) {
		act.Category = policies.ActSafe
	}
	e.described, e.unknown = act, nil
	if act.Category != policies.ActOther || act.Blocked {
		return
	}
	switch server, _ := splitType(e.action.Type); {
	case e.act.Kind == Call && act.Active:
		e.unknown = unknownTool(e.action.Type, e.act.Request.Tool.Name, e.act.Arguments)
	case e.act.Kind == AnnouncedTool:
		e.unknown = unknownTool(e.action.Type, e.action.Type, e.action.Parameters)
	case e.act.Kind == AnnouncedAction && !(e.risk.Named && server == ""):
		e.unknown = refuse(CodeUnknownType,
			"the action type %q has no known meaning; allowed_tools of the agent's permissions can name it",
			truncate.Head(e.action.Type, agents.MaxName))
	}
}

// splitType splits the type of an announced action, which can be the ID of a tool.
func splitType(kind string) (server, tool string) {
	if server, tool, ok := strings.Cut(kind, "/"); ok {
		return server, tool
	}
	return "", kind
}

// namesOf returns the names of a tool in permissions, the exact name first. The server is empty for
// an action that names no server.
func namesOf(server, tool string) []string {
	if server == "" {
		return []string{tool}
	}
	return []string{policies.ToolID(server, tool), server + "/*", tool}
}

// isListed reports whether a list of permissions contains one of the names.
func isListed(list, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
}

// forbidden returns the refusal of an act that the rules do not permit.
func (e *evaluation) forbidden() *Error {
	return refuse(CodePolicy, "%s risk at trust level %d: %s", e.why(), e.agent.Trust,
		strings.Join(e.rules.Reasons, "; "))
}

// why describes why the act has its risk.
func (e *evaluation) why() string {
	if e.risk.Raised == "" {
		return e.risk.Risk.Level()
	}
	return fmt.Sprintf("%s (%s)", e.risk.Risk.Level(), e.risk.Raised)
}

// inactive returns the refusal of an agent that may not act now.
func (e *evaluation) inactive() *Error {
	if e.agent.Status == agents.Active {
		return nil
	}
	refused := refuse(CodePolicy, "the agent is %s", e.agent.Status)
	if refused.Reason = Suspended; e.agent.Status == agents.Killed {
		refused.Reason = Killed
	}
	return refused
}

// outsidePermissions returns the refusal of a verification or a built-in tool. No rules apply to
// them, because they have no external effects.
func (e *evaluation) outsidePermissions() *Error {
	a := e.agent
	if refused := e.inactive(); refused != nil {
		return refused
	}
	for _, name := range e.act.names() {
		if slices.Contains(a.Permissions.BlockedTools, name) {
			return refuse(CodePolicy, "the agent's permissions block %s (blocked_tools)",
				truncate.Head(name, agents.MaxName))
		}
	}
	engines := a.Permissions.AllowedEngines
	if e.act.Kind == Verification && engines != nil && !slices.Contains(engines, e.act.Engine) {
		return refuse(CodePolicy, "the agent's permissions do not allow the engine of %s (allowed_engines)", e.act.Name)
	}
	return nil
}

// isListedTool reports whether the list of safe tools permits an announced tool: its arguments do
// not raise its risk.
func (e *evaluation) isListedTool() bool {
	return e.described.Category == policies.ActDangerous || // a person decides
		e.described.Category == policies.ActSafe && e.risk.Raised == ""
}

// toolRefusal returns the refusal of an announced tool by its place in the agent's list of tools.
func (e *evaluation) toolRefusal() *Error {
	switch {
	case e.agent.Status != agents.Active:
		return refuse(CodePolicy, "Agent is %s", e.agent.Status)
	case e.described.Blocked:
		return refuse(CodePolicy, "Tool '%s' is blocked for this agent", e.action.Type)
	}
	return e.unknown
}

// approvalReason returns the reason why a person must approve an announced tool.
func (e *evaluation) approvalReason() string {
	if e.described.Category == policies.ActDangerous {
		return fmt.Sprintf("Dangerous operation '%s' requires manual approval", e.action.Type)
	}
	return fmt.Sprintf("%s risk at trust level %d requires manual approval", e.why(), e.agent.Trust)
}

func unknownTool(name, tool string, arguments json.RawMessage) *Error {
	return refuse(CodePolicy, "Unknown tool '%s' requires explicit allowlisting (risk_score=%.1f)", name,
		riskScore(tool, arguments))
}

// riskScore is a heuristic for people who read why a tool was blocked, from 0 to 1, in tenths. It
// does not affect approval.
func riskScore(tool string, parameters json.RawMessage) float64 {
	tenths := 0
	name := strings.ToLower(tool)
	for _, sign := range []struct {
		score int
		words []string
	}{{5, []string{"delete"}}, {5, []string{"drop"}}, {4, []string{"money", "payment"}}} {
		if containsAny(name, sign.words) {
			tenths += sign.score
		}
	}
	text := strings.ToLower(string(parameters))
	for _, word := range []string{"database", "admin"} {
		if strings.Contains(text, word) {
			tenths += 2
		}
	}
	return float64(min(tenths, 10)) / 10
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
