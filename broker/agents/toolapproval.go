package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/policies"
)

// safeTools are approved for every agent; dangerousTools only by a person.
var (
	safeTools      = []string{"read_database", "query_data", "search_web", "send_email", "log_message", "get_weather"}
	dangerousTools = []string{"delete_database", "drop_table", "send_money", "delete_files", "shutdown_server", "revoke_access"}
)

// isSafe says whether a tool is approved for the agent without asking. What is
// dangerous is not, whatever its permissions say.
func (a Agent) isSafe(tool string) bool {
	return !slices.Contains(a.Permissions.BlockedTools, tool) && !slices.Contains(dangerousTools, tool) &&
		(slices.Contains(safeTools, tool) || slices.Contains(a.Permissions.AllowedTools, tool))
}

// ToolRuling says whether an agent may use a tool.
type ToolRuling struct {
	Approved bool `json:"approved"`
	// BlockedReason is a sentence; empty when the tool is approved.
	BlockedReason string  `json:"blocked_reason,omitempty"`
	RiskScore     float64 `json:"risk_score"` // 0 to 1, in tenths
	// ApprovalID is the question that a person can answer; empty where none can help.
	ApprovalID string `json:"approval_id,omitempty"`
}

// ruleTool says how a tool stands, before any person is asked.
func (a Agent) ruleTool(tool string, parameters json.RawMessage) (ToolRuling, policies.ActCategory) {
	score := riskScore(tool, parameters)
	r := ToolRuling{RiskScore: score}
	switch {
	case a.Status != Active:
		r.BlockedReason = fmt.Sprintf("Agent is %s", a.Status)
		return r, policies.ActOther
	case slices.Contains(a.Permissions.BlockedTools, tool):
		r.BlockedReason = fmt.Sprintf("Tool '%s' is blocked for this agent", tool)
		return r, policies.ActOther
	case slices.Contains(dangerousTools, tool):
		r.BlockedReason = fmt.Sprintf("Dangerous operation '%s' requires manual approval", tool)
		return r, policies.ActDangerous
	case a.isSafe(tool):
		r.Approved = true
		return r, policies.ActSafe
	}
	r.BlockedReason = fmt.Sprintf("Unknown tool '%s' requires explicit allowlisting (risk_score=%.1f)", tool, score)
	return r, policies.ActOther
}

// riskScore is a heuristic for people who read why a tool was blocked; it
// approves nothing.
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

// textsOf returns all strings of a JSON value.
func textsOf(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	value, err := schema.Decode(raw)
	if err != nil {
		return nil
	}
	var texts []string
	var collect func(any)
	collect = func(value any) {
		switch v := value.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, item := range v {
				collect(item)
			}
		case map[string]any:
			for name, member := range v {
				texts = append(texts, name)
				collect(member)
			}
		}
	}
	collect(value)
	return texts
}
