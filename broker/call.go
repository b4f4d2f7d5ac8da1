package broker

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// Run is the identity of a call. It is derived from the socket on which the call arrived, never
// from input of the code.
type Run struct {
	ID       string        // run_…
	Caller   caller.Caller // who requested the run
	TraceID  string        // 32 hex digits
	CodeHash string        // sha256:… of the code's bytes
	Code     string        // the code, shown to a person who is asked; may be empty
	Language string        // of the code
	ByHost   bool          // the run is one call of the host, and Code describes it
	// Context is the host's description of the step of this run: the JSON of an announced action's
	// context. It may be empty.
	Context json.RawMessage
}

// asking returns who asks in a question about a call of the run, or about the run if callID is empty.
func (r Run) asking(callID string) approval.Asking {
	var ids []string
	for _, one := range r.Caller.Credentials {
		ids = append(ids, one.ID)
	}
	return approval.Asking{Principal: r.Caller.Principal, Issuer: r.Caller.Issuer, CallerKind: string(r.Caller.Kind),
		Profile: r.Caller.Profile, SessionID: r.Caller.Session, RunID: r.ID, CallID: callID,
		Account: r.Caller.Account(), Credentials: strings.Join(ids, " ")}
}

// Recorded returns who acts in the run, as records have it.
func (r Run) Recorded() audit.Identity {
	identity := audit.IdentityOf(r.Caller)
	identity.RunID, identity.TraceID, identity.CodeHash = r.ID, r.TraceID, r.CodeHash
	return identity
}

// delegation returns on whose behalf the calls of a run are made. A call without code is made by the host itself.
func (r Run) delegation() audit.Delegation {
	c := r.Caller
	if c.Kind == caller.Contained { // it acts for itself
		return audit.Delegation{}.Through("server", c.Principal, false)
	}
	d := audit.Delegation{Subject: c.Principal, Issuer: c.Issuer}
	if c.Kind == caller.Agent {
		d = audit.Delegation{Subject: c.Registrar}
	}
	d = d.Through("host", c.Host, true)
	if c.Kind == caller.Agent {
		d = d.Through("agent", c.Principal, false)
	}
	if !r.ByHost {
		d = d.Through("program", r.CodeHash, false)
	}
	return d
}

// identity is a Run with what is derived from it once for all its calls.
type identity struct {
	Run
	acting    audit.Delegation
	delegated json.RawMessage // acting in JSON, as records have it
}

func newIdentity(run Run) identity {
	acting := run.delegation()
	text, _ := canon.Marshal(acting) // it has only texts
	return identity{Run: run, acting: acting, delegated: text}
}

// Call is one tool call as requested by the code.
type Call struct {
	ServerID  string
	Name      string
	Arguments json.RawMessage // a JSON object
	// Host reports that the host makes the call, which can also complete arguments and subscribe (catalog.Use).
	Host bool
	// Line is the line of the code that makes the call, starting at 1, as claimed by the client
	// inside the sandbox; 0 if unknown. It does not affect any decision.
	Line int
	// Tag identifies the call in RunCalls.Asking and to RunOptions.OnApproved. The code cannot choose it for other
	// runs; it may be empty.
	Tag string
	// Expires is when the question about this call expires that another process has asked; zero if none has. The call
	// is decided and asked about anew.
	Expires time.Time
}

// Answer is the response to the sandbox: the upstream's result, or a code, a sentence and the
// call's ID. Causes of errors are not included.
type Answer struct {
	OK bool `json:"ok"`
	// Raw is the upstream's CallToolResult, redacted. If the tool itself reported the failure
	// (isError), both Raw and Error are set.
	Raw   json.RawMessage `json:"raw,omitempty"`
	Error *Error          `json:"error,omitempty"`
}

// Error is a failed call as seen by the code. Type is one of the error types of docs/contract.md;
// Message is a fixed sentence or the tool's own text.
type Error struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	CallID    string `json:"call_id,omitempty"`
	Source    string `json:"source,omitempty"` // "tool" or "broker"
	// File is the path in the sandbox of a result that is too large for an answer. The client fetches it before the
	// code sees the error.
	File string `json:"file,omitempty"`
}
