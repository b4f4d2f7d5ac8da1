// Package verify checks a claim or a program and returns a verdict with its evidence. The
// engines are those of sdk/python. They parse hostile text, so each request is decided in a
// fresh sandbox.
package verify

import (
	"encoding/json"
	"time"
)

// Status is the result of a verdict.
type Status string

// The statuses. Only Verified means that a claim is true.
const (
	Verified     Status = "VERIFIED"     // the claim holds
	Error        Status = "ERROR"        // it was refuted, or has no value
	Inconclusive Status = "INCONCLUSIVE" // it was not decided
	Blocked      Status = "BLOCKED"      // the input is hostile or beyond a limit, and was not evaluated
	Unknown      Status = "UNKNOWN"      // the engine or operation does not exist
	Simplified   Status = "SIMPLIFIED"   // an item of a batch that claims nothing
)

// Request asks one engine.
type Request struct {
	Engine    string          // its name: math, logic, sql, code, …; sdk/python/src/qwed_sdk/engine.py lists them
	Arguments json.RawMessage // an object: the keyword arguments of the engine's function
	Timeout   time.Duration   // 0 means the service's limit, which is also the most
	Caller    string          // the account of who asks: where many wait, they have turns
}

// Verdict is an engine's answer.
type Verdict struct {
	Status Status
	Engine string
	Reason string          // one sentence
	Body   json.RawMessage // the whole verdict as an object, evidence included, as the SDK's clients read it
}
