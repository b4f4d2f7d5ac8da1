package admission

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// Execution is an action that a request to the kernel names, under policies that it names.
type Execution struct {
	Named    *policies.Named
	Policies []string       // the names
	Params   map[string]any // the same as Act.Arguments, decoded
	// SQL is the parameter that contains SQL; it may be empty. Risk is the risk of the tool that
	// carries out the action.
	SQL  string
	Risk policies.Risk
	// Forwarded is set if the action becomes a run or a call, which is decided itself.
	Forwarded bool
}

// kernelExecute is the tool that carries out the actions of the kernel.
const kernelExecute = "kernel_execute"

// execution holds the findings about an action of the kernel.
type execution struct {
	effect            string // a value of the named policies
	sql               bool   // SQL in the parameters determined it
	personal, secrets []string
	unread            bool // the parameters could not be searched
}

// assessExecution determines the worst possible effect of an action of the kernel, and what its
// parameters contain. The error is that of ctx.
func (e *evaluation) assessExecution(ctx context.Context) error {
	x := e.act.Execution
	e.found = execution{}
	var err error
	e.found.personal, e.found.secrets, err = kindsIn(e.act.Arguments)
	e.found.unread = err != nil
	if risk, own := risk.OfKernel(e.act.Name); own {
		e.found.effect = effectOf(risk)
		return nil
	}
	worst, others := policies.RiskLow, x.Params
	if x.SQL == "" {
		worst = x.Risk.Known()
	} else {
		// A statement that is missing or not a string cannot be judged.
		effect := sqltext.Unclear
		if query, ok := x.Params[x.SQL].(string); ok {
			effect = sqltext.Judge(query).Effect
		}
		switch e.found.sql = true; effect {
		case sqltext.Read:
		case sqltext.Write:
			worst = policies.RiskHigh
		default:
			e.found.effect = effect.String()
			return nil
		}
		others = maps.Clone(x.Params)
		delete(others, x.SQL)
	}
	content, err := risk.Assess(ctx, risk.Subject{Arguments: others})
	if content.Risk > worst {
		worst, e.found.sql = content.Risk, e.found.sql || content.Engine == "sql"
	}
	e.found.effect = effectOf(worst)
	return err
}

// judgeExecution evaluates the named policies.
func (e *evaluation) judgeExecution() {
	x, found := e.act.Execution, e.found
	e.unknown, e.rules = nil, policies.Decision{}
	if unknown := x.Named.Unknown(x.Policies); unknown != "" {
		e.unknown = &Error{Message: unknown, Reason: Malformed}
		return
	}
	if found.unread {
		e.unknown = &Error{Message: "the parameters could not be looked through", Reason: Violation}
		return
	}
	var reason string
	e.rules, reason = x.Named.Decide(policies.Execution{
		AgentID: e.agent.ID, Trust: e.agent.Trust, Active: true, Action: e.act.Name, Policies: x.Policies,
		Effect: found.effect, SQL: found.sql, Personal: found.personal, Secrets: found.secrets, Input: x.Params,
	})
	if !e.rules.Allow {
		e.unknown = &Error{Message: reason, Reason: Violation}
	}
}

// violation returns the refusal of an action of the kernel.
func (e *evaluation) violation() *Error {
	if refused := e.inactive(); refused != nil {
		return refused
	}
	switch {
	case e.unknown != nil:
		return e.unknown
	case slices.Contains(e.agent.Permissions.BlockedTools, kernelExecute):
		return refuse(CodePolicy, "the agent's permissions block %s (blocked_tools)", kernelExecute)
	case e.isForwarded(): // the run or the call is checked against the permissions
		return nil
	}
	return e.outsidePermissions()
}

// kindsIn returns the kinds of personal data and of credentials in the parameters.
func kindsIn(params json.RawMessage) (personal, secrets []string, err error) {
	_, found, err := redact.New().JSON(params)
	for _, f := range found {
		if redact.IsPersonal(f.Kind) {
			personal = append(personal, f.Kind)
		} else {
			secrets = append(secrets, f.Kind)
		}
	}
	return personal, secrets, err
}

func effectOf(risk policies.Risk) string {
	switch risk {
	case policies.RiskLow:
		return sqltext.Read.String()
	case policies.RiskCritical:
		return sqltext.Destroy.String()
	}
	return sqltext.Write.String()
}
