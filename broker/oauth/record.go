package oauth

import (
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// record is one principal's stored sign-in to one server. It contains credentials, so it
// is only written encrypted and is never printed.
type record struct {
	Format    int       `json:"format"`
	Principal string    `json:"principal"`
	ServerID  string    `json:"server"`
	URL       string    `json:"url"`
	Changed   time.Time `json:"changed"`
	// Began is when the person signed in. It is zero in sign-ins of older versions.
	Began time.Time `json:"began,omitzero"`

	// Login is a random ID of this sign-in, which is kept when it is refreshed.
	Login    string       `json:"login,omitempty"`
	Resource string       `json:"resource"` // as the server published it
	Issuer   string       `json:"issuer"`
	Account  string       `json:"account,omitempty"` // as the authorization server names it
	Subject  string       `json:"subject,omitempty"` // of the ID token, if it is exchanged
	At       endpoints    `json:"endpoints"`
	Client   registration `json:"client"`
	Tokens   tokens       `json:"tokens"`
	// Distance is how far away the authorization server may be; nil in sign-ins of older versions.
	Distance *reach.Distance `json:"distance,omitempty"`
	// Wanted are scopes that the server has asked for since, and the sign-in does not have.
	Wanted []string `json:"wanted,omitempty"`
	// Over is the reason why the user has to sign in again; empty if the sign-in can be used.
	Over string `json:"over,omitempty"`
	Key  []byte `json:"key,omitempty"` // of DPoP, PKCS #8; nil for bearer tokens
}

const recordFormat = 1

// registration is Airlock's client registration at one authorization server.
type registration struct {
	Issuer     string    `json:"issuer"` // it is never shown to another
	ID         string    `json:"id"`
	Secret     string    `json:"secret,omitempty"`
	Method     string    `json:"method"` // of token_endpoint_auth_method
	Redirect   string    `json:"redirect,omitempty"`
	Expires    time.Time `json:"expires,omitzero"`
	Registered bool      `json:"registered,omitempty"` // by Airlock itself
}

// tokens are what an authorization server has issued.
type tokens struct {
	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	ID      string    `json:"id,omitempty"` // the ID token, if it is exchanged
	Issued  time.Time `json:"issued,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // zero: unknown
	Scopes  []string  `json:"scopes,omitempty"`
}

// ahead is how long before its end a token is refreshed: a fifth of its life, at most
// five minutes.
func (t tokens) ahead() time.Duration {
	return min(5*time.Minute, t.Expires.Sub(t.Issued)/5)
}

// isDue reports whether it is time for another token.
func (t tokens) isDue(now time.Time) bool {
	return t.Access == "" || !t.Expires.IsZero() && !now.Before(t.Expires.Add(-t.ahead()))
}

// isUsable reports whether the access token can still be sent.
func (t tokens) isUsable(now time.Time) bool {
	return t.Access != "" && (t.Expires.IsZero() || now.Before(t.Expires))
}

// secrets are the texts that must not leave Airlock.
func (r *record) secrets() []string {
	return slices.DeleteFunc([]string{r.Tokens.Access, r.Tokens.Refresh, r.Tokens.ID, r.Client.Secret},
		func(s string) bool { return s == "" })
}

// scheme is that of the header Authorization.
func (r *record) scheme() string {
	if len(r.Key) > 0 {
		return "DPoP"
	}
	return "Bearer"
}
