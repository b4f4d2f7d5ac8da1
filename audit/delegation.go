package audit

// Delegation is on whose behalf an act happens, and through whom (RFC 8693, section 4.1): a person uses a host, the
// host works for an agent, and the agent has written the program that acts.
type Delegation struct {
	Subject string `json:"sub,omitempty"` // the person; empty if nobody is behind the act
	Issuer  string `json:"iss,omitempty"` // vouches for the person; empty for a user of the operating system
	Act     *Actor `json:"act,omitempty"` // who acts; nil if it is the person
}

// Actor is one party of a delegation.
type Actor struct {
	Subject string `json:"sub"`  // the digest of a program, the ID of an agent, the name of a host or a server
	Kind    string `json:"kind"` // "program", "agent", "host" or "server"
	// Claimed reports that the party itself has given its name, and nobody vouches for it.
	Claimed bool   `json:"claimed,omitempty"`
	Act     *Actor `json:"act,omitempty"` // through whom this party came to act; nil if it is the person
}

// Through returns the delegation with a further party, which acts from now on. An empty name is nobody.
func (d Delegation) Through(kind, name string, claimed bool) Delegation {
	if name != "" {
		d.Act = &Actor{Subject: name, Kind: kind, Claimed: claimed, Act: d.Act}
	}
	return d
}
