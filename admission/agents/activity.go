package agents

import (
	"strings"

	"github.com/airlock-mcp/airlock/audit"
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
	CostUSD      string `json:"cost_usd,omitempty"`  // what it was debited
	ServerID     string `json:"server_id,omitempty"` // of a call that was made, as RunID and CallID are
	RunID        string `json:"run_id,omitempty"`
	CallID       string `json:"call_id,omitempty"`
	Record       uint64 `json:"record"` // its number in the audit log
}

// MaxActivity is how many entries Activity returns at most.
const MaxActivity = 1000

// maxActivityBytes is how much of the log is read for one list: what an agent did
// before that is found by `airlock audit`.
const maxActivityBytes = 512 << 20

// registered begins the record of a registration, before which an agent has done nothing.
const registered = "agent registered as "

// Activity returns the newest attempts of an agent, the newest first: those that
// were denied or wait for a person too. It is a view of the audit log in dir, which it
// reads from the end to the agent's registration at most.
func Activity(dir, agentID string, n int) ([]Entry, error) {
	n = min(n, MaxActivity)
	entries := []Entry{}
	if n <= 0 {
		return entries, nil
	}
	_, err := audit.Scan(dir, maxActivityBytes, []string{agentID}, func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
		isAttempt := b.Kind == audit.KindAction && b.Principal == agentID && b.Decision != ""
		if !isAttempt && b.Kind != audit.KindOperator {
			return true, nil
		}
		r, err := record()
		if err != nil || !isAttempt {
			return !strings.HasPrefix(r.Detail, registered) || !strings.HasSuffix(r.Detail, ": "+agentID), err
		}
		entries = append(entries, entryOf(r))
		return len(entries) < n, nil
	})
	return entries, err
}

func entryOf(r audit.Record) Entry {
	return Entry{
		Timestamp: r.Time, ActionType: r.ToolName, Decision: r.Decision, RiskLevel: r.Risk, ErrorCode: r.ErrorType,
		Conversation: r.SessionID, Approver: r.Approver,
		CostUSD: r.CostUSD, ServerID: r.ServerID, RunID: r.RunID, CallID: r.CallID, Record: r.Seq,
	}
}
