package audit

import "encoding/json"

// Kind is the kind of event of a record.
type Kind string

// The kinds of records.
const (
	KindLogStart  Kind = "log_start" // the first record of a log
	KindRotate    Kind = "rotate"    // the last record of a full segment
	KindRecovered Kind = "recovered" // the log was not as a process leaves it that ends: see the detail
	KindUpgrade   Kind = "upgrade"   // the log was taken over from an earlier version: see the detail
	KindRemoved   Kind = "removed"   // old records are about to be removed: see the detail
	KindRunStart  Kind = "run_start" // code is about to run
	KindRunEnd    Kind = "run_end"   // a run is over
	// The sandbox of a run that waits for a person was saved and freed, or goes on.
	KindRunSuspend Kind = "run_suspend"
	KindRunResume  Kind = "run_resume"
	KindIntent     Kind = "intent"    // a call is about to happen
	KindOutcome    Kind = "outcome"   // the result of a call, refused ones included
	KindApproval   Kind = "approval"  // a person was asked, or answered
	KindViolation  Kind = "violation" // code broke the protocol of its socket
	KindOperator   Kind = "operator"  // an operator changed what is allowed
	KindAction     Kind = "action"    // an agent announced an action, and what was decided
	KindKernel     Kind = "kernel"    // a tool of the kernel face was called, and what was decided
	KindDecision   Kind = "decision"  // the risk gateway decided about a call of its face
	KindVerdict    Kind = "verdict"   // an engine was asked, and its answer
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{
		KindLogStart, KindRotate, KindRecovered, KindUpgrade, KindRemoved, KindRunStart, KindRunEnd, KindRunSuspend,
		KindRunResume, KindIntent, KindOutcome, KindApproval, KindViolation, KindOperator, KindAction, KindKernel,
		KindDecision, KindVerdict,
	}
}

// The words of Effect.Outcome.
const (
	OutcomeOK      = "ok"      // the act succeeded
	OutcomeError   = "error"   // the act was tried and failed
	OutcomeRefused = "refused" // the act was not tried
	OutcomeUnknown = "unknown" // Airlock ended before the act did
)

// Record is one line of the log. The log itself sets Seq, Time, Writer, Prev
// and Hash; the caller of Append sets Kind and what applies. Empty members are left out.
type Record struct {
	Seq    uint64 `json:"seq"`
	Time   string `json:"time"` // RFC 3339, UTC, microseconds
	Kind   Kind   `json:"kind"`
	Writer string `json:"writer"` // the Airlock process that wrote it
	Identity
	Act
	Ruling
	Effect
	RunFacts
	Detail string `json:"detail,omitempty"` // a sentence for people; never an argument's value
	Prev   string `json:"prev"`             // hash of the record before, or of nothing: 64 zeros
	Hash   string `json:"hash"`             // "sha256:…" over RFC 8785 of the record without this member
}

// Identity is who acted, and in which run.
type Identity struct {
	RunID     string `json:"run_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Principal string `json:"principal,omitempty"`
	// Issuer vouches for the principal; empty for a user of the operating system.
	Issuer string `json:"issuer,omitempty"`
	// CallerKind is a word of internal/caller: "local", "user" or "agent".
	CallerKind string `json:"caller_kind,omitempty"`
	Profile    string `json:"profile,omitempty"` // of the caller
	TraceID    string `json:"trace_id,omitempty"`
	CodeHash   string `json:"code_hash,omitempty"`
}

// Act is what was to be done.
type Act struct {
	CallID           string `json:"call_id,omitempty"`
	ParentID         string `json:"parent_id,omitempty"` // the run or call that made this call
	ServerID         string `json:"server_id,omitempty"`
	ToolName         string `json:"tool_name,omitempty"`
	DefinitionDigest string `json:"definition_digest,omitempty"`
	ArgumentsHash    string `json:"arguments_hash,omitempty"` // keyed, see Log.Hash
	// Arguments has the arguments' structure, with a keyed hash for each value, or
	// the values if the operator configured that.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Values are the arguments covered by ArgumentsHash. They are not part of the record. If
	// the operator configured that, they are stored encrypted beside the log.
	Values json.RawMessage `json:"-"`
	// Delegation is on whose behalf a call was made, and through whom: a Delegation in JSON.
	Delegation json.RawMessage `json:"delegation,omitempty"`
	// TaskID is the ID that the server gave the call as a task of MCP.
	TaskID string `json:"task_id,omitempty"`
	// Engine is the engine of package verify that was asked.
	Engine string `json:"engine,omitempty"`
}

// Ruling is what was decided about the act.
type Ruling struct {
	// "allow" or "deny"; of an announced action APPROVED, DENIED, PENDING or BUDGET_EXCEEDED
	Decision string   `json:"decision,omitempty"`
	Policies []string `json:"policies,omitempty"` // the IDs of the rules that decided
	// PolicyVersion is the digest of all rules in force.
	PolicyVersion string `json:"policy_version,omitempty"`
	Risk          string `json:"risk,omitempty"`
	Approval      string `json:"approval,omitempty"` // a word of admission/approval
	Approver      string `json:"approver,omitempty"` // who answered, and through what
	// CostUSD is what an agent's act was debited, in US dollars as a decimal number;
	// below zero what was returned.
	CostUSD string `json:"cost_usd,omitempty"`
	// DebitID identifies the record of an announcement, a debit or a refund, which a table of the state
	// database keeps until the log is on stable storage.
	DebitID string `json:"debit_id,omitempty"`
	// VerificationID is the risk gateway's, of one decision.
	VerificationID string `json:"verification_id,omitempty"`
	// Verdict is the status of an engine's verdict.
	Verdict string `json:"verdict,omitempty"`
}

// Effect is the result of the act.
type Effect struct {
	Outcome   string `json:"outcome,omitempty"`
	ErrorType string `json:"error_type,omitempty"`
	// ErrorSource is the origin of a run's error. If it is "code", the code chose
	// ErrorType.
	ErrorSource string         `json:"error_source,omitempty"`
	Limit       string         `json:"limit,omitempty"`       // the configuration's key of the limit that was hit
	ResultHash  string         `json:"result_hash,omitempty"` // keyed, see Log.Hash
	ResultSize  int64          `json:"result_size,omitempty"` // bytes
	DurationMS  int64          `json:"duration_ms,omitempty"` // whole milliseconds
	Redactions  map[string]int `json:"redactions,omitempty"`  // kind → count
	Traffic
}

// Traffic is what a connection to a host of the network has carried.
type Traffic struct {
	Address       string `json:"address,omitempty"` // IP address and port that were connected to
	BytesSent     int64  `json:"bytes_sent,omitempty"`
	BytesReceived int64  `json:"bytes_received,omitempty"`
}

// RunFacts are what a run was made of.
type RunFacts struct {
	Language      string `json:"language,omitempty"`
	Image         string `json:"image,omitempty"` // name@sha256:…
	Snapshot      string `json:"snapshot,omitempty"`
	InputDigest   string `json:"input_digest,omitempty"`
	OutputDigest  string `json:"output_digest,omitempty"`
	ApprovalState string `json:"approval_state,omitempty"`
	Calls         int    `json:"calls,omitempty"`
	// Durable is set if a suspended run goes on, or ends, in a later process, should this one end.
	Durable bool `json:"durable,omitempty"`
	// Suspension is how often the run was suspended so that another process can continue it.
	Suspension int `json:"suspension,omitempty"`
	// Limits are those in force when the run began, by the configuration's keys,
	// with values as the configuration would take them.
	Limits map[string]string `json:"limits,omitempty"`
	// Host and Model are the agent host's unverified claims.
	Host  string `json:"host,omitempty"`
	Model string `json:"model,omitempty"`
}
