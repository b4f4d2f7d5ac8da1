package approval

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Question is everything that a person is asked about, and all that the answer holds for.
type Question struct {
	ID      string    `json:"id"` // apr_…
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
	Asking
	Subject
	Grounds
	// Elicitation is what a server asks for itself while a call of its tool is made; nil
	// where the question is whether the call may happen.
	Elicitation *Elicitation `json:"elicitation,omitempty"`
	// Desk is the socket, in the directory of the question, that takes its answer.
	Desk string `json:"desk,omitempty"`
}

// Asking is who asks: a question belongs to its run, and its run to its caller.
type Asking struct {
	Principal string `json:"principal"`
	// Issuer vouches for the principal; empty for a user of the operating system.
	Issuer     string `json:"issuer,omitempty"`
	Profile    string `json:"profile,omitempty"`     // that the caller has
	CallerKind string `json:"caller_kind,omitempty"` // a word of internal/caller
	SessionID  string `json:"session_id"`
	RunID      string `json:"run_id"`
	CallID     string `json:"call_id"`
	// Account is whose share of the open questions it takes, see caller.Caller.Share. It is
	// no part of what is shown.
	Account string `json:"-"`
}

// Subject is what would happen.
type Subject struct {
	ServerID         string          `json:"server_id"`
	ToolName         string          `json:"tool_name"`
	DefinitionDigest string          `json:"definition_digest"`
	Arguments        json.RawMessage `json:"arguments"` // the very bytes that would be sent, but for credentials that Airlock holds
	CodeHash         string          `json:"code_hash"`
	PolicyVersion    string          `json:"policy_version"`
	// Code is what is running, to be shown around the call; empty for a call
	// that no code makes. It holds only as far as it has CodeHash.
	Code string `json:"code,omitempty"`
	// ClaimedLine is the line of the code that makes the call, from 1, as the
	// client inside the sandbox says; 0 where it does not. The code could have
	// made it say another.
	ClaimedLine int `json:"claimed_line,omitempty"`
}

// Elicitation is a server's own question (MCP 2025-11-25, Elicitation), fit to be shown.
// Subject.Arguments has all of it as a person sees it.
type Elicitation struct {
	Schema      json.RawMessage `json:"schema,omitempty"`       // of the form; nil where there is nothing to fill in
	NeedsValues bool            `json:"needs_values,omitempty"` // a bare yes is no answer
	URL         string          `json:"url,omitempty"`          // that the person is asked to open; nothing else opens it
}

// Grounds are why a person is asked.
type Grounds struct {
	Risk    string   `json:"risk"`            // what policy holds the tool for
	Flags   []string `json:"flags,omitempty"` // what is suspicious about its definition
	Rules   []string `json:"rules"`           // the policies that ask, each with file and line
	Approve []string `json:"approve"`         // who must agree
}

// Answer is what a person said. The zero value is no.
type Answer int

// The answers.
const (
	No          Answer = iota // a person refused
	Yes                       // a person agreed to exactly this call, once
	Expired                   // there was no answer in time
	Unreachable               // no person can be asked
	Dismissed                 // a person closed the question without deciding
)

// String returns the answer as records have it.
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

// Verdict is an answer with where it came from.
type Verdict struct {
	Answer Answer
	By     string // who answered, and through what: "ann, command line"
	// Approver is the caller who answered with a credential, which must still be in force
	// when a Yes is carried out. nil: it was a person at this machine.
	Approver *caller.Caller
	// ForRun extends a Yes to every call of the same tool, with the same
	// definition, by the same run, under the same policy.
	ForRun bool
	// Reason is why a person refused, in their own words; for who made the call.
	Reason string
	// Content is what the person filled in, a JSON object, of a Yes to an Elicitation.
	// It goes to the server that asked, and is written nowhere.
	Content secret.Value
	// ByGrant says that no person answered this question: an earlier Yes was
	// extended to it.
	ByGrant bool
}

// String says who answered what.
func (v Verdict) String() string {
	text := v.Answer.String()
	if v.ForRun {
		text += " for the run"
	}
	if v.By != "" {
		text += " by " + v.By
	}
	return text
}
