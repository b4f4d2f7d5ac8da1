// Package catalog holds what Airlock knows about the tools of its upstream
// servers: each definition as the bytes that arrived, gathered into immutable
// snapshots that can be searched.
package catalog

import (
	"encoding/json"
	"time"
)

// Tool is one tool of one upstream server, as the server described it, or another feature of the server.
// Every text in it comes from a server and is hostile until proven otherwise.
type Tool struct {
	ServerID string // the key under mcpServers
	// Name is the protocol's identifier: case-sensitive, never changed. Features that are not tools have the name that
	// FeatureName returns.
	Name        string
	Kind        Kind
	Use         Use             // set by Lookup for a name of UseName
	Title       string          // empty when absent
	Description string          // empty when absent
	InputSchema json.RawMessage // always a JSON object
	// OutputSchema is nil when the tool promises no structured result.
	OutputSchema json.RawMessage
	Annotations  Annotations
	UI           UI  // of a tool
	App          App // of a resource that is an app
	// Raw is the definition byte for byte as it arrived; no field is lost.
	Raw json.RawMessage
	// Digest is "sha256:" and the hex SHA-256 of Reviewed.
	Digest string
	// Withheld reports that the tool cannot be used and that only its name comes
	// from the server: see Withhold.
	Withheld bool
}

// Annotations are a tool's hints about itself (MCP 2025-11-25, ToolAnnotations).
// A nil hint was not given. They are unverified: they can raise a tool's risk, and
// lower it only for a server whose annotations the operator trusts.
type Annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// Server is one upstream with the tools that were usable when it was listed.
type Server struct {
	ID    string
	Tools []Tool
	// Features are the resources, templates of resources, and prompts that the server lists, and the tools that only
	// apps call.
	Features []Tool
	// Problem is a sentence that explains why the server is missing. It is empty
	// if the server's tools are known.
	Problem string
	// SignIn reports that the Problem is a sign-in that the user of Airlock can make.
	SignIn bool
	// Unreachable is a sentence that explains why the server cannot be reached now
	// and Tools come from an earlier connection. Otherwise it is empty.
	Unreachable string
	// Retrying reports that Airlock reconnects to a server with a Problem, or to an
	// unreachable one, in the background. A call that fails now can succeed later.
	Retrying bool
	// Warnings name what was left out of Tools and why, a sentence each.
	Warnings []string
	// Noticed is when Airlock noticed the last change of the lists, or zero if they have not changed.
	Noticed time.Time
}

// displayTitle returns the title for people, from either of the two members in which a
// server can give it (MCP 2025-11-25, Schema Reference, Tool).
func (t *Tool) displayTitle() string {
	if t.Title != "" {
		return t.Title
	}
	return t.Annotations.Title
}
