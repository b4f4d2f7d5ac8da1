package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

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

// splitType splits the type of an announced action, which can be the ID of a tool.
func splitType(kind string) (server, tool string) {
	if server, tool, ok := strings.Cut(kind, "/"); ok {
		return server, tool
	}
	return "", kind
}

// subject returns what the risk of an announced action is derived from.
func (s *Service) subject(action Action) (admission.Subject, error) {
	_, tool := splitType(action.Type)
	of := admission.Subject{Name: tool}
	if s.opts.Tools != nil {
		of.Tools = s.opts.Tools(action.Type)
	}
	parameters, err := strictjson.Value(action.Parameters)
	if err != nil {
		return of, fmt.Errorf("reading the parameters of an action: %w", err)
	}
	arguments, _ := parameters.(map[string]any)
	if arguments == nil {
		arguments = map[string]any{}
	}
	// A tool would get the members of the action beside its parameters.
	of.Arguments = []any{arguments, map[string]any{"query": action.Query, "code": action.Code, "target": action.Target}}
	return of, nil
}

// describe describes an act to the rules.
func (a Agent) describe(name string, names []string, risk admission.Assessment) policies.Act {
	act := policies.Act{
		AgentID: a.ID, Trust: a.Trust, Active: a.Status == Active, Engines: a.Permissions.AllowedEngines,
		Type: name, Risk: risk.Risk, Engine: risk.Engine, Category: risk.Category, Blocked: isListed(a.Permissions.BlockedTools, names),
	}
	if act.Category == policies.ActOther && isListed(a.Permissions.AllowedTools, names) {
		act.Category = policies.ActSafe
	}
	return act
}

// announced describes an announced action to the rules. It reports false if the type has no known meaning.
func (a Agent) announced(action Action, risk admission.Assessment) (policies.Act, bool) {
	server, tool := splitType(action.Type)
	act := a.describe(action.Type, namesOf(server, tool), risk)
	return act, act.Category != policies.ActOther || act.Blocked || risk.Named && server == ""
}

// why describes why an act has its risk.
func why(risk admission.Assessment) string {
	if risk.Raised == "" {
		return risk.Risk.Level()
	}
	return fmt.Sprintf("%s (%s)", risk.Risk.Level(), risk.Raised)
}

// subject returns what the risk of a call is derived from.
func (act Act) subject() (admission.Subject, error) {
	arguments, err := strictjson.Value(act.Arguments)
	if err != nil {
		return admission.Subject{}, refuse(CodeAction, "the arguments: %s", err)
	}
	declared := admission.Declared{Risk: act.Risk, Schema: act.Schema}
	return admission.Subject{Name: act.Tool, Tools: []admission.Declared{declared}, Call: true, Arguments: arguments}, nil
}

// runRisk is the risk of a run. Code in a sandbox can only make calls, and each call is an act with its own risk
// (docs/design/0014-agents-and-their-real-calls.md).
func runRisk() admission.Assessment {
	return admission.Assessment{Meaning: admission.Meaning{Risk: policies.RiskLow, Engine: "code", Category: policies.ActOther}, Named: true}
}

// actOf describes a run or a call to the rules. refused is the reason if the agent's permissions do not allow it.
func (a Agent) actOf(act Act, risk admission.Assessment) (described policies.Act, refused string) {
	described = a.describe(act.name(), act.names(), risk)
	if act.isRun() || described.Category != policies.ActOther || described.Blocked || !described.Active {
		return described, "" // the rules decide
	}
	return described, unknownTool(act.name(), act.Tool, act.Arguments)
}

func unknownTool(name, tool string, arguments json.RawMessage) string {
	return fmt.Sprintf("Unknown tool '%s' requires explicit allowlisting (risk_score=%.1f)", name, riskScore(tool, arguments))
}
