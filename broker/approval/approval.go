// Package approval asks people whether a call may happen, and holds what they
// answered. What a person was shown is what the answer is bound to; an answer
// counts once, expires, and never comes from the model or its code.
package approval

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// State is how far a call, or a run, got with asking. The words are those of
// approval_state in a run's envelope.
type State string

// The states, from the least to the most restrictive.
const (
	NotRequired State = "NOT_REQUIRED"
	Approved    State = "APPROVED"
	Pending     State = "PENDING"
	Denied      State = "DENIED"
)

// order ranks the states by how restrictive they are.
var order = []State{NotRequired, Approved, Pending, Denied}

// Worse returns the more restrictive of two states. A state that is none of
// the four counts as Denied.
func Worse(a, b State) State {
	return order[max(a.rank(), b.rank())]
}

func (s State) rank() int {
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order) - 1
}

// Question is everything that a person is asked about, and all that the answer holds for.
type Question struct {
	ID        string    `json:"id"` // apr_…
	Asked     time.Time `json:"asked"`
	Expires   time.Time `json:"expires"`
	Principal string    `json:"principal"`
	// Issuer vouches for the principal; empty for a user of the operating system.
	Issuer     string `json:"issuer,omitempty"`
	CallerKind string `json:"caller_kind,omitempty"` // a word of internal/caller
	SessionID  string `json:"session_id"`
	RunID      string `json:"run_id"`
	CallID     string `json:"call_id"`

	ServerID         string          `json:"server_id"`
	ToolName         string          `json:"tool_name"`
	DefinitionDigest string          `json:"definition_digest"`
	Arguments        json.RawMessage `json:"arguments"` // the very bytes that would be sent
	CodeHash         string          `json:"code_hash"`
	PolicyVersion    string          `json:"policy_version"`
	// Code is what is running, to be shown around the call; empty for a call
	// that no code makes. It holds only as far as it has CodeHash.
	Code string `json:"code,omitempty"`

	Risk    string   `json:"risk"`            // what policy holds the tool for
	Flags   []string `json:"flags,omitempty"` // what is suspicious about its definition
	Rules   []string `json:"rules"`           // the policies that ask, each with file and line
	Approve []string `json:"approve"`         // who must agree
	// HostPID is the process of the agent's host, 0 for none: nothing that it has
	// started may approve.
	HostPID int `json:"host_pid,omitempty"`
}

// Answer is what a person said. The zero value is no.
type Answer int

// The answers.
const (
	No      Answer = iota // a person refused, or closed the question
	Yes                   // a person agreed to exactly this call, once
	Expired               // nobody answered in time
	Nobody                // there is nobody to ask
)

// String returns the answer as records have it.
func (a Answer) String() string {
	switch a {
	case Yes:
		return "approved"
	case Expired:
		return "expired"
	case Nobody:
		return "unanswered: there is nobody to ask"
	default:
		return "denied"
	}
}

// Verdict is an answer with where it came from.
type Verdict struct {
	Answer Answer
	By     string // who answered, and through what: "ann, command line"
	// ForRun extends a Yes to every call of the same tool, with the same
	// definition, by the same run, under the same policy.
	ForRun bool
}

// Asker reaches people through one channel, such as a host's elicitation. Ask
// may be called concurrently. It returns when a person has answered or ctx has
// ended; an error means that this channel reached nobody.
type Asker interface {
	Ask(ctx context.Context, q Question) (Verdict, error)
}

// None is for an Airlock that has nobody to ask: every question is answered
// with Nobody at once.
type None struct{}

var _ Asker = None{}

// Ask answers at once that there is nobody.
func (None) Ask(context.Context, Question) (Verdict, error) { return Verdict{Answer: Nobody}, nil }
