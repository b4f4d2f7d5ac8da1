// Package caller identifies who makes a request. The transport creates one Caller for each request
// from what it can prove: the process on stdio or the subject of a token. No other code creates a
// Caller, and the content of a request cannot change it.
package caller

import (
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// Kind is the kind of a caller's principal.
type Kind string

// The kinds of callers.
const (
	Local Kind = "local" // the user of the operating system that Airlock runs for
	User  Kind = "user"  // a person authenticated by an issuer of tokens
	Agent Kind = "agent" // a program with its own token
	// Contained is an upstream server in a sandbox that asks for a connection. Its principal is the server's ID.
	Contained Kind = "server"
)

// UnknownLineage is the lineage of a host that cannot be identified. ProcessLineage begins the
// lineage of a process; its procfs.Name follows.
const (
	UnknownLineage = "unknown"
	ProcessLineage = "process "
)

// Caller is who makes a request.
type Caller struct {
	Principal string // the subject, unique within Issuer
	Kind      Kind   // if empty, the caller is unknown
	Issuer    string // the issuer that authenticates Principal; empty for the operating system
	Session   string // the host's conversation, ses_…; unique over all callers
	// Lineage identifies the conversation across connections and restarts of Airlock: the process of a
	// host on stdio or the credential over HTTP. It is empty if the session ends with its connection.
	Lineage   string
	Profile   string   // which servers and tools it may see; empty for all
	Scopes    []string // its permissions, see Has
	Registrar string   // of an agent: the Name of the caller that registered it
	Facts     Facts    // about the principal; of an agent, about its registrar
	Roles     []string // for which it may approve; an agent has none
	// Host is the name that the host, or a client of the API, has given itself. It is recorded and sent with
	// delegations. It proves nothing, and no decision depends on it.
	Host string
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

// Key returns an unambiguous key of the principal with its kind and issuer.
func (c Caller) Key() string {
	return fmt.Sprintf("%d:%s%d:%s%s", len(c.Kind), c.Kind, len(c.Issuer), c.Issuer, c.Principal)
}

// CredentialLineage returns the lineage of a caller with a credential, whose Session is that of the
// credential. All conversations of one credential have the same, because the transport cannot tell
// them apart: a client can open a new session at any time.
func (c Caller) CredentialLineage() string {
	return "credential " + canon.Digest([]byte(c.Key()+" "+c.Session))
}

// Account returns the account whose quotas the caller's requests use. It is the only key of limits
// that callers share. A principal has one account in all its sessions. All agents that one caller
// registered have one account, too, which differs from the caller's, so that the caller can still
// stop agents that have reached their limit.
func (c Caller) Account() string {
	if c.Registrar != "" {
		return "agents of " + c.Registrar
	}
	return string(c.Kind) + " " + c.Name()
}
