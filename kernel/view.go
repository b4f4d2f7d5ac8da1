package kernel

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// LogQuery selects entries of the audit log.
type LogQuery struct {
	Limit  int       // 1 to MaxEntries
	Agent  string    // empty: all agents whose records the actor may read
	Type   string    // blocked, allowed, cmvk_review or all; empty means all
	Since  time.Time // zero: from the start of the log
	Before uint64    // the number of a record: only older ones; 0 for the newest
}

// Limits of a query.
const (
	DefaultEntries = 20
	MaxEntries     = 1000
	// maxScanned is the maximum number of bytes read by one query, from the end of the log: about
	// 150,000 records, which takes a second of processor time.
	maxScanned = 64 << 20
)

// LogTypes are the values of LogQuery.Type.
var LogTypes = []string{"blocked", "allowed", "cmvk_review", "all"}

// Entry is one decision, as recorded in the log.
type Entry struct {
	Timestamp string   `json:"timestamp"` // RFC 3339, UTC, microseconds
	Type      string   `json:"type"`      // blocked or allowed
	AgentID   string   `json:"agent_id,omitempty"`
	Caller    string   `json:"caller,omitempty"` // set if the caller is not an agent
	Action    string   `json:"action"`           // the tool, or the type of the action
	Server    string   `json:"server,omitempty"`
	Decision  string   `json:"decision,omitempty"`
	Policies  []string `json:"policies,omitempty"`
	Error     string   `json:"error,omitempty"` // an error type or code
	Detail    string   `json:"detail,omitempty"`
	RunID     string   `json:"run_id,omitempty"`
	Record    uint64   `json:"record"` // its number in the log
}

// LogView is the result of a query.
type LogView struct {
	Logs     []Entry `json:"logs"` // newest first
	Returned int     `json:"returned"`
	Total    int     `json:"total"` // number of matches
	Stats    Stats   `json:"stats"`
	// Complete is false if the log is longer than one query reads. The numbers then cover only its
	// newest part.
	Complete bool `json:"complete"`
}

// Stats counts the entries that match the filter without its type.
type Stats struct {
	Blocked int `json:"blocked_total"`
	Allowed int `json:"allowed_total"`
}

// Log returns decisions, newest first: calls of the kernel's tools, announced actions, and tool
// calls. The error is a *Refusal, or that the log could not be read.
func (s *Service) Log(ctx context.Context, a Actor, q LogQuery) (LogView, error) {
	switch {
	case q.Limit < 1 || q.Limit > MaxEntries:
		return LogView{}, refuse("limit must be a number from 1 to %d", MaxEntries)
	case q.Type != "" && !slices.Contains(LogTypes, q.Type):
		return LogView{}, refuse("filter.type %q is not one of %s", short(q.Type), strings.Join(LogTypes, ", "))
	}
	if err := s.mayRead(ctx, a, &q); err != nil {
		return LogView{}, err
	}
	if err := s.admit(ctx, a, "get_audit_log"); err != nil {
		return LogView{}, err
	}
	turn, err := s.scans.Wait(ctx, a.Account())
	if err != nil {
		return LogView{}, err
	}
	defer turn.Release()
	return s.scan(ctx, q)
}

// mayRead restricts a query to the records that the actor may read.
func (s *Service) mayRead(ctx context.Context, a Actor, q *LogQuery) error {
	if a.Kind == caller.Agent && q.Agent == "" {
		q.Agent = a.Principal
	}
	if a.mayReadLog() {
		return nil
	}
	if q.Agent == "" {
		return refuse("this needs a token with the scope audit, or filter.agent_id with one of your own agents")
	}
	_, err := s.agent(ctx, a, q.Agent)
	return err
}

// words returns the words of which a line of the log must contain one to match the query.
func (q LogQuery) words() []string {
	if q.Agent != "" {
		return []string{`"principal":"` + q.Agent + `"`}
	}
	return []string{`"kind":"kernel"`, `"kind":"action"`, `"kind":"outcome"`}
}

func (s *Service) scan(ctx context.Context, q LogQuery) (LogView, error) {
	view := LogView{Logs: []Entry{}}
	var err error
	view.Complete, err = audit.Scan(s.opts.AuditDirectory, maxScanned, q.words(),
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			if !q.selects(b) {
				return true, ctx.Err()
			}
			blocked := isBlocked(b)
			if blocked {
				view.Stats.Blocked++
			} else {
				view.Stats.Allowed++
			}
			if q.Type == "blocked" && !blocked || q.Type == "allowed" && blocked || q.Type == "cmvk_review" &&
				b.ToolName != "cmvk_review" {
				return true, nil
			}
			view.Total++
			if len(view.Logs) == q.Limit || q.Before != 0 && b.Seq >= q.Before {
				return true, nil
			}
			r, err := record()
			if err == nil {
				view.Logs = append(view.Logs, entryOf(r, blocked))
			}
			return true, err
		})
	view.Returned = len(view.Logs)
	return view, err
}

// selects reports whether a record is an entry that matches the filter without its type.
func (q LogQuery) selects(b audit.Brief) bool {
	switch b.Kind {
	case audit.KindKernel, audit.KindAction, audit.KindOutcome:
	default:
		return false
	}
	if q.Agent != "" && b.Principal != q.Agent {
		return false
	}
	if q.Since.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, b.Time)
	return err == nil && !at.Before(q.Since)
}

// isBlocked reports whether the requested action was not performed. A pending action counts as
// blocked.
func isBlocked(b audit.Brief) bool {
	switch b.Kind {
	case audit.KindKernel:
		return b.Decision != allowed
	case audit.KindAction:
		return b.Decision != admission.Approved
	}
	return b.Outcome == audit.OutcomeRefused
}

func entryOf(r audit.Record, blocked bool) Entry {
	e := Entry{
		Timestamp: r.Time, Type: "allowed", Action: r.ToolName, Server: r.ServerID, Decision: r.Decision,
		Policies: r.Policies,
		Error:    r.ErrorType, Detail: r.Detail, RunID: r.RunID, Record: r.Seq,
	}
	if blocked {
		e.Type = "blocked"
	}
	if r.CallerKind == string(caller.Agent) {
		e.AgentID = r.Principal
	} else {
		e.Caller = r.Principal
	}
	return e
}
