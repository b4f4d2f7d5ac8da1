package caller

import (
	"errors"
	"time"
)

// Credential is one proof of a caller's identity. The acts of the caller end with it.
type Credential struct {
	// ID identifies the credential: tok_… for a token that Airlock issued, agent_… for a registered
	// agent. Other IDs cannot be looked up.
	ID string `json:"id"`
	// Mark is the digest of an agent's token: a rotated token is another credential.
	// Empty: any token of the agent.
	Mark string `json:"mark,omitempty"`
	// Scopes and Profile are what the credential gave when it was used. It ends when
	// it gives less.
	Scopes  []string  `json:"scopes,omitempty"`
	Profile string    `json:"profile,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // zero: it has no end that is known in advance
}

// Errors of an act whose caller may not act any more.
var (
	// ErrEnded is returned if a credential was revoked, has expired, or lost rights.
	ErrEnded = errors.New("the caller's token was revoked, has expired, or lost rights")
	// ErrInactive is returned if the caller is an agent that was suspended or killed.
	ErrInactive = errors.New("the agent was suspended or ended")
)

// Expires returns when the first of the caller's credentials expires, or the zero time.
func (c Caller) Expires() time.Time {
	var first time.Time
	for _, one := range c.Credentials {
		if !one.Expires.IsZero() && (first.IsZero() || one.Expires.Before(first)) {
			first = one.Expires
		}
	}
	return first
}
