// Package policies decides whether a tool call is permitted. It is a pure function of the
// rules and the request: it reads no clock, file or network.
//
// Rules are Cedar policies. A call is denied unless a rule permits it, and a forbid
// overrides every permit. Unlike in standard Cedar, a rule that fails to evaluate denies
// the call instead of being skipped. See docs/policies.md.
package policies

import _ "embed"

//go:embed default.cedar
var defaultSource []byte

// Default returns the policy file that applies when the operator names none.
func Default() File {
	return File{Name: "default.cedar", Source: defaultSource}
}
