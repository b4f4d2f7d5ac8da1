package approval

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Question contains everything that a person is asked about. An answer applies to exactly this
// content.
type Question struct {
	ID      string    `json:"id"` // apr_…
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
	Asking
	Subject
	Grounds
	// Elicitation is a server's own request to the person during a tool call. It is nil if the
	// question is whether the call may happen.
	Elicitation *Elicitation `json:"elicitation,omitempty"`
	// Desk is the name of the socket that accepts the answer, in the directory of the question.
	Desk string `json:"desk,omitempty"`
}

// Asking identifies the run that asks, and its caller.
type Asking struct {
	Principal string `json:"principal"`
	// Issuer is the issuer of the principal's identity; empty for a user of the operating system.
	Issuer     string `json:"issuer,omitempty"`
	Profile    string `json:"profile,omitempty"`     // of the caller
	CallerKind string `json:"caller_kind,omitempty"` // a value of internal/caller
	SessionID  string `json:"session_id"`
	RunID      string `json:"run_id"`
	CallID     string `json:"call_id"`
	// Account is the account whose share of the open questions it uses, see caller.Caller.Share. It
	// is not shown.
	Account string `json:"-"`
	// Credentials are the IDs of those of the caller, with spaces between them. They must not approve, see
	// Options.IsOwn, and are not shown.
	Credentials string `json:"-"`
	// Roles are those that the question asks, with spaces between them. Only Desk.Find sets it.
	Roles string `json:"-"`
}

// Subject describes the call.
type Subject struct {
	ServerID         string          `json:"server_id"`
	ToolName         string          `json:"tool_name"`
	DefinitionDigest string          `json:"definition_digest"`
	Arguments        json.RawMessage `json:"arguments"` // the bytes to be sent, without credentials held by Airlock
	CodeHash         string          `json:"code_hash"`
	PolicyVersion    string          `json:"policy_version"`
	// Code is the running code, shown around the call. It is empty for a call that is not made by
	// code. It is only valid if its hash is CodeHash.
	Code string `json:"code,omitempty"`
	// ClaimedLine is the line of the code that makes the call, starting at 1, as claimed by the
	// client inside the sandbox; 0 if unknown. The code can make it claim another line.
	ClaimedLine int `json:"claimed_line,omitempty"`
}

// Elicitation is a server's own question (MCP 2025-11-25, Elicitation), checked and safe to show.
// Subject.Arguments contains all of it in the form shown to a person.
type Elicitation struct {
	Schema      json.RawMessage `json:"schema,omitempty"`       // of the form; nil if there is nothing to fill in
	NeedsValues bool            `json:"needs_values,omitempty"` // a yes without values is not an answer
	// the address that the person is asked to open; Airlock does not open it
	URL string `json:"url,omitempty"`
	// SignIn is set if Airlock asks, and not the server: URL is a page of this machine at which the person begins to
	// sign in to the server.
	SignIn bool `json:"sign_in,omitempty"`
}

// isForHost reports whether only the agent's host can ask the question: it has a form with values, or the person
// works where the host runs.
func (e *Elicitation) isForHost() bool { return e != nil && (e.NeedsValues || e.SignIn) }

// Grounds are the reasons for asking a person.
type Grounds struct {
	Risk    string   `json:"risk"`            // the risk of the tool according to policy
	Flags   []string `json:"flags,omitempty"` // suspicious properties of its definition
	Rules   []string `json:"rules"`           // the policies that require approval, each with file and line
	Approve []string `json:"approve"`         // the owner and roles that must approve; empty: the owner
	// People is the number of different persons who must approve; 0 and 1 are one.
	People int    `json:"people,omitempty"`
	Cure   string `json:"cure,omitempty"` // the change of the configuration after which nobody is asked
}

// Answer is a person's answer. The zero value is No.
type Answer int

// The answers.
const (
	No          Answer = iota // a person refused
	Yes                       // a person agreed to exactly this call, once
	Expired                   // nobody answered in time
	Unreachable               // no person can be asked
	Dismissed                 // a person closed the question without deciding
)

// String returns the answer as written in records.
func (a Answer) String() string {
	switch a {
	case Yes:
		return "approved"
	case Expired:
		return "expired"
	case Unreachable:
		return "unanswered: there is nobody to ask"
	case Dismissed:
		return "closed without an answer"
	default:
		return "denied"
	}
}

// Verdict is an answer with its origin.
type Verdict struct {
	Answer Answer
	By     string // the person and the channel: "ann, command line"
	// Approvers are the callers who approved. Their credentials must still be valid when a Yes is
	// carried out. The owner who approved in the host's own dialogue is not among them.
	Approvers []caller.Caller
	// For extends a Yes to further calls of the same tool with the same definition, under the same policy and for
	// the same reasons.
	For Extent
	// Reason is the person's reason for a refusal, in their own words, for the caller.
	Reason string
	// Content is a JSON object with the values that the person entered, for a Yes to an
	// Elicitation. It is sent to the server that asked, and is not stored.
	Content secret.Value
	// ByGrant is set if nobody answered this question and an earlier Yes was extended to it.
	ByGrant bool
}

// String describes the answer and the person who gave it.
func (v Verdict) String() string {
	text := v.Answer.String()
	if extent := v.For.Describe(); extent != "" {
		text += " " + extent
	}
	if v.By != "" {
		text += " by " + v.By
	}
	return text
}
