package agents

import (
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/audit"
)

// Entry is one attempt of an agent, as recorded in the audit log.
type Entry struct {
	Timestamp    string `json:"timestamp"` // RFC 3339, UTC, microseconds
	ActionType   string `json:"action_type"`
	Decision     string `json:"decision"`
	RiskLevel    string `json:"risk_level,omitempty"`
	ErrorCode    string `json:"error_code,omitempty"`
	Conversation string `json:"conversation_id,omitempty"`
	Approver     string `json:"approver,omitempty"`
	CostUSD      string `json:"cost_usd,omitempty"`  // amount debited
	ServerID     string `json:"server_id,omitempty"` // set for calls that were made, like RunID and CallID
	RunID        string `json:"run_id,omitempty"`
	CallID       string `json:"call_id,omitempty"`
	Reason       string `json:"reason,omitempty"` // of a refusal of the kernel
	Record       uint64 `json:"record"`           // its number in the audit log
}

// MaxActivity is the maximum number of entries returned by Activity.
const MaxActivity = 1000

// maxActivityBytes is the number of bytes of the log that are read for one list. `airlock audit`
// finds earlier attempts.
const maxActivityBytes = 512 << 20

// registered is the start of the record of a registration. An agent has no earlier attempts.
const registered = "agent registered as "

// Activity returns the n newest attempts of an agent in a period whose records have a number below before, newest
// first, including those that were denied or are waiting for a person. 0 means all numbers. It reads
// the audit log in dir backwards, at most to the agent's registration or the begin of the period, and of full files
// only the records of the agent.
func Activity(dir, agentID string, period audit.Period, before uint64, n int) ([]Entry, error) {
	n = min(n, MaxActivity)
	entries := []Entry{}
	if n <= 0 {
		return entries, nil
	}
	words := []string{`"principal":"` + agentID + `"`}
	for _, t := range Types() {
		words = append(words, `"detail":"`+registered+string(t)+": "+agentID+`"`)
	}
	_, err := audit.ScanBefore(dir, before, maxActivityBytes, words,
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			isAttempt := b.Principal == agentID &&
				(b.Kind == audit.KindAction && b.Decision != "" || isRefusal(b.Kind, b.Outcome))
			if !isAttempt && b.Kind != audit.KindOperator {
				return true, nil
			}
			r, err := record()
			if err != nil || !isAttempt {
				return !strings.HasPrefix(r.Detail, registered) || !strings.HasSuffix(r.Detail, ": "+agentID), err
			}
			if !period.Has(r) {
				return !period.Before(r), nil
			}
			entries = append(entries, entryOf(r))
			return len(entries) < n, nil
		})
	return entries, err
}

// Debits returns those of the debits that the audit log in dir has a record of. whole is false if not
// all of the log was searched.
func Debits(dir string, ids []string) (found map[string]bool, whole bool, err error) {
	found = map[string]bool{}
	whole, err = audit.Scan(dir, maxActivityBytes, ids,
		func(_ audit.Brief, record func() (audit.Record, error)) (bool, error) {
			r, err := record()
			if err != nil {
				return false, err
			}
			if slices.Contains(ids, r.DebitID) {
				found[r.DebitID] = true
			}
			return len(found) < len(ids), nil
		})
	return found, whole || len(found) == len(ids), err
}

// isRefusal reports whether a record is about a call that the kernel has refused. Calls that it
// permits lead to records of their runs and calls.
func isRefusal(kind audit.Kind, outcome string) bool {
	return kind == audit.KindKernel && outcome == audit.OutcomeRefused
}

func entryOf(r audit.Record) Entry {
	if isRefusal(r.Kind, r.Outcome) {
		return Entry{Timestamp: r.Time, ActionType: r.ToolName, Decision: "DENIED", Conversation: r.SessionID,
			Reason: r.Detail, Record: r.Seq}
	}
	return Entry{
		Timestamp: r.Time, ActionType: r.ToolName, Decision: r.Decision, RiskLevel: r.Risk, ErrorCode: r.ErrorType,
		Conversation: r.SessionID, Approver: r.Approver,
		CostUSD: r.CostUSD, ServerID: r.ServerID, RunID: r.RunID, CallID: r.CallID, Record: r.Seq,
	}
}
