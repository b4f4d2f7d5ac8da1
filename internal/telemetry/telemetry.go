// Package telemetry names things for logs and traces: the keys of log
// attributes and the identifiers that tie log, audit record and envelope together.
package telemetry

import (
	"crypto/rand"
	"encoding/hex"
)

// The keys of log attributes. One thing has one key everywhere.
const (
	KeyRun      = "run_id"
	KeyCall     = "call_id"
	KeySession  = "session_id"
	KeySandbox  = "sandbox_id"
	KeyServer   = "server_id"
	KeyTool     = "tool_name"
	KeyError    = "error"
	KeyDuration = "duration_ms"
	KeyPath     = "path"
	KeyImage    = "image"
)

// NewID returns prefix, an underscore and 32 random hex digits (128 bits).
func NewID(prefix string) string { return prefix + "_" + randomHex() }

// NewTraceID returns a W3C Trace Context trace-id: 32 hex digits, not all zero
// (W3C Trace Context, section 3.2.2.3).
func NewTraceID() string {
	for {
		if id := randomHex(); id != "00000000000000000000000000000000" {
			return id
		}
	}
}

func randomHex() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b[:])
}
