package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Person has signed in at the issuer with OpenID Connect. It has no rights of its own: they follow from the
// configuration in force at each request.
type Person struct {
	signIn, subject, key, algorithm, basis string
	facts                                  caller.Facts
	until                                  time.Time
}

// storedPerson is a person as another node of a cluster reads it.
type storedPerson struct {
	SignIn    string       `json:"sign_in"`
	Subject   string       `json:"subject"`
	Key       string       `json:"key"`
	Algorithm string       `json:"algorithm"`
	Basis     string       `json:"basis"`
	Facts     caller.Facts `json:"facts,omitzero"`
	Until     time.Time    `json:"until"`
}

// MarshalJSON implements json.Marshaler. The text must be kept such that nobody can change it.
func (p Person) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedPerson{p.signIn, p.subject, p.key, p.algorithm, p.basis, p.facts, p.until})
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Person) UnmarshalJSON(text []byte) error {
	var s storedPerson
	if err := strictjson.UnmarshalOpen(text, &s); err != nil {
		return err
	}
	*p = Person{s.SignIn, s.Subject, s.Key, s.Algorithm, s.Basis, s.Facts, s.Until}
	return nil
}

// ErrSignIn is returned if nobody can sign in at an issuer now, because none is configured with a client.
var ErrSignIn = errors.New("sign-in with OpenID Connect is not configured: auth.signIn")

// ErrNoRights is returned if a person may not do anything here.
var ErrNoRights = errors.New("the account has no rights here")

// personTime is how long a person stays signed in.
const personTime = 12 * time.Hour

// SignIn returns the issuer's URL and the client that people sign in with. The error is ErrSignIn.
func (i *Issuer) SignIn() (issuer string, client config.SignIn, err error) {
	if i == nil || i.config.SignIn.ClientID == "" {
		return "", config.SignIn{}, ErrSignIn
	}
	return i.config.Issuer, i.config.SignIn, nil
}

// Person returns the person of an ID token (OpenID Connect Core 1.0, section 3.1.3.7), which must have the nonce. info
// is the answer of the userinfo endpoint, or nil: it must be about the same subject, and adds what the ID token does
// not have. The error is an *InvalidError, or that the keys of the issuer cannot be read.
func (i *Issuer) Person(ctx context.Context, token secret.Value, nonce string,
	info map[string]json.RawMessage) (Person, error) {
	if _, _, err := i.SignIn(); err != nil {
		return Person{}, err
	}
	text := token.Reveal()
	parsed, err := jwt.ParseSigned(text, algorithms)
	switch {
	case len(text) > maxJWT:
		return Person{}, invalid(Malformed)
	case err != nil:
		return Person{}, invalid(reasonOfParse(err))
	case len(parsed.Headers) != 1:
		return Person{}, invalid(Malformed)
	case !isIDToken(parsed.Headers[0]):
		return Person{}, i.refused(parsed, WrongType)
	}
	header := parsed.Headers[0]
	said, reason, err := i.verified(ctx, parsed, header)
	if err != nil {
		return Person{}, err
	}
	if reason == "" {
		reason = i.misuse(said, nonce)
	}
	if reason != "" {
		return Person{}, i.refused(parsed, reason)
	}
	all := maps.Clone(said.all)
	if info != nil && string(info["sub"]) != string(all["sub"]) { // section 5.3.2
		return Person{}, i.refused(parsed, BadClaims)
	}
	for name, value := range info {
		if _, there := all[name]; !there {
			all[name] = value
		}
	}
	facts, ok := i.factsOf(all)
	if !ok {
		return Person{}, i.refused(parsed, BadClaims)
	}
	return Person{signIn: rand.Text(), subject: said.registered.Subject, key: header.KeyID, algorithm: header.Algorithm,
		basis: i.basis(), facts: facts, until: i.now().Add(personTime)}, nil
}

// misuse returns why an ID token is not for this sign-in; empty if it is.
func (i *Issuer) misuse(said statement, nonce string) Reason {
	client := i.config.SignIn.ClientID
	if reason, ok := i.valid(said.registered, jwt.Audience{client}); !ok {
		return reason
	}
	switch {
	case said.own.Party != "" && said.own.Party != client,
		said.own.Party == "" && len(said.registered.Audience) > 1:
		return WrongAudience
	case said.registered.IssuedAt == nil,
		nonce == "" || subtle.ConstantTimeCompare([]byte(said.own.Nonce), []byte(nonce)) != 1:
		return BadClaims
	}
	return ""
}

// isIDToken reports whether a header can be that of an ID token: access tokens have another type.
func isIDToken(header jose.Header) bool {
	named, _ := header.ExtraHeaders[jose.HeaderType].(string)
	return named == "" || strings.EqualFold(named, "JWT")
}

// basis identifies the part of the configuration that a person was identified with.
func (i *Issuer) basis() string {
	c := i.config
	return fmt.Sprintf("%q %q %q %q", c.Issuer, c.SignIn.ClientID, c.GroupsClaim, c.Claims)
}

// callerOf returns the caller that a person is under the present configuration.
func (i *Issuer) callerOf(ctx context.Context, p Person) (caller.Caller, error) {
	switch {
	case i == nil || i.basis() != p.basis:
		return caller.Caller{}, invalid(Ended)
	case !i.now().Before(p.until):
		return caller.Caller{}, invalid(Expired)
	}
	if found, err := i.keys.find(ctx, p.key, p.algorithm, false); err != nil || len(found) == 0 {
		return caller.Caller{}, cmp.Or(err, invalid(UnknownKey))
	}
	given := slices.DeleteFunc(slices.Clone(i.config.SignIn.Groups), func(group config.Scope) bool {
		return !slices.Contains(p.facts.Groups, group.Name)
	})
	everyone := i.config.SignIn.Everyone
	if len(given) > 0 { // the profiles of the groups replace it
		everyone.Profile = ""
	}
	who, err := grant(caller.Caller{Principal: p.subject, Kind: caller.User, Issuer: i.config.Issuer,
		Session: "openid " + p.subject, Facts: p.facts}, append(given, everyone))
	if err == nil && len(who.Scopes) == 0 {
		err = ErrNoRights
	}
	m := mark{gives: rightDigests(ofPeople, append(given, i.config.SignIn.Everyone)),
		begin: p.until.Add(-personTime).Unix(), signIn: p.signIn, key: p.key}
	who.Credentials = []caller.Credential{i.credentialOf(who, m, p.until)}
	return who, err
}

// Person returns the caller that a person who signed in is now. It returns the errors of Identify, and ErrNoRights.
func (a *Authenticator) Person(ctx context.Context, p Person) (caller.Caller, error) {
	who, err := a.issuer().callerOf(ctx, p)
	return a.admitted(ctx, proof{who: who}, err)
}

// RolesOf returns the roles of a caller. Only people have roles, not the agents that they register.
func RolesOf(roles []config.Role, who caller.Caller) []string {
	if who.Kind != caller.User && who.Kind != caller.Local {
		return nil
	}
	var has []string
	for _, role := range roles {
		if who.Facts.IsIn(role.Groups) || slices.Contains(role.Principals, who.Name()) {
			has = append(has, role.Name)
		}
	}
	return has
}
