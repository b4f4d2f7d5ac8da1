package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/policies"
)

// ToolRuling is the decision whether an agent may use a tool.
type ToolRuling struct {
	Approved bool `json:"approved"`
	// BlockedReason is a sentence, or empty if the tool is approved.
	BlockedReason string  `json:"blocked_reason,omitempty"`
	RiskScore     float64 `json:"risk_score"` // 0 to 1, in tenths
	// ApprovalID is the question that a person can answer. It is empty if approval is not possible.
	ApprovalID string `json:"approval_id,omitempty"`
	// Retryable is set if a person cannot be asked now, but possibly later.
	Retryable bool `json:"retryable,omitempty"`
}

// ruleTool decides about a tool before a person is asked. ask is true if a person can approve it.
func (a *attempt) ruleTool() (r ToolRuling, ask bool) {
	tool := a.action.Type
	r.RiskScore = riskScore(tool, a.action.Parameters)
	switch {
	case a.agent.Status != Active:
		r.BlockedReason = fmt.Sprintf("Agent is %s", a.agent.Status)
	case a.act.Blocked:
		r.BlockedReason = fmt.Sprintf("Tool '%s' is blocked for this agent", tool)
	case a.act.Category == policies.ActDangerous:
		r.BlockedReason, ask = fmt.Sprintf("Dangerous operation '%s' requires manual approval", tool), true
	case a.act.Category != policies.ActSafe:
		r.BlockedReason = unknownTool(tool, tool, a.action.Parameters)
	case a.risk.Raised == "": // for a safe tool, the name is sufficient
		r.Approved = true
	case !a.rules.Allow:
		r.BlockedReason = a.forbidden().Message
	case len(a.rules.Approve) > 0:
		r.BlockedReason, ask = fmt.Sprintf("%s risk at trust level %d requires manual approval", why(a.risk), a.agent.Trust), true
	default:
		r.Approved = true
	}
	return r, ask
}

// riskScore is a heuristic for people who read why a tool was blocked. It does not affect approval.
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
