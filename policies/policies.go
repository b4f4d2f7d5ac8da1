// Package policies decides whether a tool call may happen. It is pure: the same
// rules and the same request give the same decision, and nothing here reads a
// clock, a file or the network.
//
// Rules are Cedar policies. What is not permitted is denied; a forbid overrules
// every permit; and unlike plain Cedar, a rule that cannot be evaluated denies
// the call instead of being skipped. See docs/policies.md.
package policies

import _ "embed"

//go:embed default.cedar
var defaultSource []byte

// Default returns the policy file that applies when the operator names none.
func Default() File {
	return File{Name: "default.cedar", Source: defaultSource}
}
