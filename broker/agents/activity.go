package agents

import (
	"github.com/airlock-mcp/airlock/broker/audit"
)

// Entry is one attempt of an agent, as the audit log has it.
type Entry struct {
	Timestamp    string `json:"timestamp"` // RFC 3339, UTC, microseconds
	ActionType   string `json:"action_type"`
	Decision     string `json:"decision"`
	RiskLevel    string `json:"risk_level,omitempty"`
	ErrorCode    string `json:"error_code,omitempty"`
	Conversation string `json:"conversation_id,omitempty"`
	Approver     string `json:"approver,omitempty"`
	Record       uint64 `json:"record"` // its number in the audit log
}

// MaxActivity is how many entries Activity returns at most.
const MaxActivity = 1000

// Activity returns the newest attempts of an agent, the newest first: those that
// were denied or wait for a person too. It is a view of the audit log in dir.
func Activity(dir, agentID string, n int) ([]Entry, error) {
	n = min(n, MaxActivity)
	records, err := audit.Newest(dir, n, `"principal":"`+agentID+`"`, func(r audit.Record) bool {
		return r.Kind == audit.KindAction && r.Principal == agentID
	})
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(records))
	for i, r := range records {
		entries[i] = Entry{
			Timestamp: r.Time, ActionType: r.ToolName, Decision: r.Decision, RiskLevel: r.Risk, ErrorCode: r.ErrorType,
			Conversation: r.SessionID, Approver: r.Approver, Record: r.Seq,
		}
	}
	return entries, nil
}
