// Package caller says who asks for something. A Caller is made once for each
// request, at the edge of the program, from what the transport proves: the
// process on stdio, the subject of a token. Nothing below the edge makes one,
// and nothing that a caller writes changes one.
package caller

// Kind is what sort of principal a caller is.
type Kind string

// The kinds of callers.
const (
	Local Kind = "local" // the user of the operating system that Airlock runs for
	User  Kind = "user"  // a person whom an issuer of tokens vouches for
	Agent Kind = "agent" // a program with a token of its own
)

// Caller is who makes a request.
type Caller struct {
	Principal string   // the subject, unique within Issuer
	Kind      Kind     // empty counts as no caller at all
	Issuer    string   // who vouches for Principal; empty for the operating system
	Session   string   // the host's conversation, ses_…; unique over all callers
	Profile   string   // which servers and tools it may see; empty for all
	Scopes    []string // what it may do beyond its own things
	Account   string   // whose share of this host its requests take, see Share: one principal's agents have one
	// Credentials are what has proved the identity, all of which must be in force for the
	// caller to act. Empty for the user of the operating system.
	Credentials []Credential
}

// Owner is the part of a caller that its runs, questions and files belong to.
// Owners are comparable: two requests have one owner exactly when the transport
// proves the same principal, session and profile for both.
type Owner struct {
	Principal string `json:"principal"`
	Kind      Kind   `json:"kind"`
	Issuer    string `json:"issuer,omitempty"`
	Session   string `json:"session"`
	Profile   string `json:"profile,omitempty"`
}

// Owner returns what the caller's things belong to.
func (c Caller) Owner() Owner { return Owner{c.Principal, c.Kind, c.Issuer, c.Session, c.Profile} }

// Known reports whether the caller has a principal and a session. A request
// without either is refused at the edge.
func (c Caller) Known() bool { return c.Principal != "" && c.Kind != "" && c.Session != "" }

// Name returns the principal as policies and limits know it: two issuers may
// use one subject for two people, so a subject of an issuer is named with it.
func (c Caller) Name() string {
	if c.Issuer == "" {
		return c.Principal
	}
	return c.Issuer + "#" + c.Principal
}

// Share is whose share of this host the caller's requests take: its account, or, where it has none, one
// of its own, for all its sessions.
func (c Caller) Share() string {
	if c.Account != "" {
		return c.Account
	}
	return string(c.Kind) + " " + c.Name()
}
