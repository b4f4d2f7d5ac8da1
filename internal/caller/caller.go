// Package caller identifies who makes a request. The transport creates one Caller for each request
// from what it can prove: the process on stdio or the subject of a token. No other code creates a
// Caller, and the content of a request cannot change it.
package caller

// Kind is the kind of a caller's principal.
type Kind string

// The kinds of callers.
const (
	Local Kind = "local" // the user of the operating system that Airlock runs for
	User  Kind = "user"  // a person authenticated by an issuer of tokens
	Agent Kind = "agent" // a program with its own token
)

// Caller is who makes a request.
type Caller struct {
	Principal string   // the subject, unique within Issuer
	Kind      Kind     // if empty, the caller is unknown
	Issuer    string   // the issuer that authenticates Principal; empty for the operating system
	Session   string   // the host's conversation, ses_…; unique over all callers
	Profile   string   // which servers and tools it may see; empty for all
	Scopes    []string // its permissions, see Has
	Account   string   // whose quota its requests use, see Share; the agents of a principal have one account
	// Credentials prove the identity. The caller may act only while all of them are in force. They
	// are empty for the user of the operating system.
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

// Owner returns the owner of the caller's runs, questions and files.
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

// Share returns the name under which the caller's requests count towards quotas: its account or, if
// it has none, its kind and name, which are the same in all its sessions.
func (c Caller) Share() string {
	if c.Account != "" {
		return c.Account
	}
	return string(c.Kind) + " " + c.Name()
}
