package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// algorithms are the accepted signature algorithms: those with a key that only the issuer has.
// Tokens without a signature, or signed with a shared secret, are refused.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA,
}

const (
	clockSkew   = time.Minute // by which our clock and the issuer's may differ
	maxJWT      = 16 << 10    // bytes
	maxSubject  = 200         // bytes
	maxLifetime = 24 * time.Hour
)

// Issuer checks the access tokens of an OAuth 2.1 authorization server: JWTs (RFC 9068)
// for us as their audience. It may be used concurrently.
type Issuer struct {
	config config.Auth
	scopes []config.Scope
	keys   *keys
	gives  map[string]bool // digests of the rights that the configuration gives, see markOf
	now    func() time.Time
}

// Unread sets a function that is called after each failed attempt to read the issuer's keys,
// with the error and how long the known keys still count. It must be called before
// Authenticate.
func (i *Issuer) Unread(told func(err error, known time.Duration)) { i.keys.unread = told }

// NewIssuer returns the issuer of a configuration. client sends the requests for keys; nil
// means a separate one. now is the clock; nil means time.Now.
func NewIssuer(c config.Auth, client *http.Client, now func() time.Time) *Issuer {
	if now == nil {
		now = time.Now
	}
	i := &Issuer{config: c, scopes: c.Scopes, keys: newKeys(c.Issuer, c.JWKS, client, now), now: now}
	if len(i.scopes) == 0 {
		for _, right := range Scopes {
			i.scopes = append(i.scopes, config.Scope{Name: right, Rights: []string{right}})
		}
	}
	i.gives = map[string]bool{i.identifies(): true}
	for _, named := range c.Types {
		i.gives[typeDigest(named)] = true
	}
	for _, right := range append(rightDigests(ofTokens, i.scopes), rightDigests(ofPeople, i.groups())...) {
		i.gives[right] = true
	}
	return i
}

// KeepKeys makes the issuer use the keys that before has read. i may be nil, and before, too.
func (i *Issuer) KeepKeys(before *Issuer) {
	if i != nil && before != nil && i.config.Issuer == before.config.Issuer && i.config.JWKS == before.config.JWKS {
		i.keys = before.keys
	}
}

// claims are the claims that are used in addition to the registered ones.
type claims struct {
	Scope    string `json:"scope"`     // RFC 8693, section 4.2
	Scp      any    `json:"scp"`       // as others name it: a text, or a list
	ClientID string `json:"client_id"` // RFC 8693, section 4.3
	Party    string `json:"azp"`       // as OpenID Connect names it
	Nonce    string `json:"nonce"`     // of an ID token
}

// isJWT reports whether a token has the form of a JWT.
func isJWT(token string) bool { return strings.Count(token, ".") == 2 }

// Authenticate returns the caller that a token identifies in a request of a path, or an
// *InvalidError. Any other error means that the issuer's keys cannot be read, or that the
// scopes contradict each other.
func (i *Issuer) Authenticate(ctx context.Context, token secret.Value, path string) (caller.Caller, error) {
	text := token.Reveal()
	if len(text) > maxJWT {
		return caller.Caller{}, invalid(Malformed)
	}
	parsed, err := jwt.ParseSigned(text, algorithms)
	switch {
	case err != nil:
		return caller.Caller{}, invalid(reasonOfParse(err))
	case len(parsed.Headers) != 1:
		return caller.Caller{}, invalid(Malformed)
	case !i.takesType(parsed.Headers[0]):
		return caller.Caller{}, i.refused(parsed, WrongType)
	}
	header := parsed.Headers[0]
	said, reason, err := i.verified(ctx, parsed, header)
	if err == nil && reason == "" {
		reason, _ = i.valid(said.registered, jwt.Audience{i.config.Audience, i.resource(path)})
	}
	facts, readable := i.factsOf(said.all)
	switch {
	case err != nil:
		return caller.Caller{}, err
	case reason == "" && !readable:
		reason = BadClaims
	}
	if reason != "" {
		return caller.Caller{}, i.refused(parsed, reason)
	}
	who, given, err := i.caller(said.registered, said.own)
	who.Facts = facts
	end := said.registered.Expiry.Time()
	if !i.now().Before(end) { // the issuer's clock is behind ours
		end = end.Add(clockSkew)
	}
	var begin time.Time
	if said.registered.IssuedAt != nil {
		begin = said.registered.IssuedAt.Time()
	}
	m := mark{gives: append(rightDigests(ofTokens, given), typeDigest(typeOf(header))), begin: begin.Unix(),
		key: header.KeyID}
	who.Credentials = []caller.Credential{i.credentialOf(who, m, end)}
	return who, err
}

// holderDigits is the number of digits in the ID of a credential that identify its holder, see holderOf.
const holderDigits = 16

// credentialOf returns the credential of a caller whom the issuer vouches for. A renewed token with the same rights
// and facts is the same credential.
func (i *Issuer) credentialOf(who caller.Caller, m mark, end time.Time) caller.Credential {
	m.gives, m.subject = append(m.gives, i.identifies()), digest(who.Name())
	holder := sha256.Sum256(fmt.Appendf(nil, "%q %q", who.Issuer, who.Session))
	rights := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", who.Profile, who.Scopes, who.Facts.Key()))
	return caller.Credential{ID: jwtID + hex.EncodeToString(holder[:holderDigits/2]) + hex.EncodeToString(rights[:8]),
		Mark: m.String(), Profile: who.Profile, Expires: end}
}

// statement is the content of a token with a valid signature.
type statement struct {
	registered jwt.Claims
	own        claims
	all        map[string]json.RawMessage
}

// verified returns the statement of a token if one of the issuer's keys signed it, otherwise the reason to refuse
// it. The keys are read again if none of them fits.
func (i *Issuer) verified(ctx context.Context, parsed *jwt.JSONWebToken, header jose.Header) (said statement,
	refused Reason, err error) {
	if said, refused, err = i.signed(ctx, parsed, header, false); err == nil && refused == BadSignature {
		return i.signed(ctx, parsed, header, true)
	}
	return said, refused, err
}

// signed returns the claims of a token if one of the issuer's keys signed it, otherwise the reason
// for the refusal. again is passed to keys.find.
func (i *Issuer) signed(ctx context.Context, token *jwt.JSONWebToken, header jose.Header,
	again bool) (said statement, refused Reason, err error) {
	found, err := i.keys.find(ctx, header.KeyID, header.Algorithm, again)
	if err != nil {
		return said, "", err
	}
	if len(found) == 0 {
		return said, UnknownKey, nil
	}
	refused = BadSignature
	for _, key := range found {
		said = statement{}
		if token.Claims(key.Key, &said.registered, &said.own, &said.all) == nil {
			return said, "", nil
		}
		if token.Claims(key.Key) == nil {
			refused = BadClaims // the signature is right
		}
	}
	return statement{}, refused, nil
}

// takesType reports whether the type of a token is accepted. Tokens of other types may be signed
// with the same keys for other purposes (RFC 8725, section 3.11).
func (i *Issuer) takesType(header jose.Header) bool {
	named := typeOf(header)
	return slices.ContainsFunc(i.config.Types, func(taken string) bool { return strings.EqualFold(taken, named) })
}

// typeOf returns the type of a token in lower case.
func typeOf(header jose.Header) string {
	named, _ := header.ExtraHeaders[jose.HeaderType].(string)
	return strings.TrimPrefix(strings.ToLower(named), "application/")
}

// valid reports whether a token is from the issuer, for one of the audiences, valid now, and has a subject. Otherwise
// it returns the reason.
func (i *Issuer) valid(c jwt.Claims, audience jwt.Audience) (Reason, bool) {
	now := i.now()
	if c.Expiry == nil || c.Subject == "" || len(c.Subject) > maxSubject ||
		strings.ContainsFunc(c.Subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return BadClaims, false
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.config.Issuer,
		AnyAudience: audience, Time: now}, clockSkew)
	if err != nil {
		return reasonOfClaims(err), false
	}
	// A token without a beginning counts from now, and one that begins earlier must not end later
	// than that either.
	end, begin := c.Expiry.Time(), now.Add(clockSkew)
	for _, claimed := range []*jwt.NumericDate{c.IssuedAt, c.NotBefore} {
		if claimed != nil && claimed.Time().Before(begin) {
			begin = claimed.Time()
		}
	}
	if end.Sub(begin) > maxLifetime {
		return BadClaims, false
	}
	return "", true
}

// caller returns the caller that a valid token identifies, and the scopes that gave its rights. A renewed token of the
// same client has the same session.
func (i *Issuer) caller(c jwt.Claims, own claims) (who caller.Caller, given []config.Scope, err error) {
	who = caller.Caller{Principal: c.Subject, Kind: caller.User, Issuer: i.config.Issuer}
	client := own.ClientID
	if client == "" {
		client = own.Party
	}
	who.Session = fmt.Sprintf("oauth %d:%s%s", len(client), client, c.Subject)
	granted := strings.Fields(own.Scope)
	switch scp := own.Scp.(type) {
	case string:
		granted = append(granted, strings.Fields(scp)...)
	case []any:
		for _, one := range scp {
			if text, ok := one.(string); ok {
				granted = append(granted, text)
			}
		}
	}
	given = slices.DeleteFunc(slices.Clone(i.scopes), func(s config.Scope) bool {
		return !slices.Contains(granted, s.Name)
	})
	who, err = grant(who, given)
	return who, given, err
}

// grant gives a caller what scopes, or groups, give. The error is ErrProfiles.
func grant(who caller.Caller, given []config.Scope) (caller.Caller, error) {
	for _, scope := range given {
		if scope.Profile != "" && who.Profile != "" && scope.Profile != who.Profile {
			return caller.Caller{}, ErrProfiles
		}
		who.Profile = cmp.Or(scope.Profile, who.Profile)
		who.Scopes = append(who.Scopes, scope.Rights...)
	}
	slices.Sort(who.Scopes)
	who.Scopes = slices.Compact(who.Scopes)
	if slices.Contains(who.Scopes, ScopeAdmin) {
		who.Scopes = append(who.Scopes, caller.ScopeAllRuns)
	}
	return who, nil
}

// ErrProfiles is returned if the scopes of a token name several profiles.
var ErrProfiles = errors.New("the scopes of the token name several profiles: ask for one of them")

// names reports whether a scope leads to a profile.
func (i *Issuer) names(profile string) bool {
	return slices.ContainsFunc(i.scopes, func(s config.Scope) bool { return s.Profile == profile })
}

// scopesFor names scopes of the issuer that together give rights: for each right that
// no other of them gives, the one with the fewest rights, and of those the first. One
// that leads to another profile than a caller has is not among them.
func (i *Issuer) scopesFor(rights []string, profile string) []string {
	var names []string
	given := map[string]bool{}
	for _, right := range rights {
		if given[right] {
			continue
		}
		var best *config.Scope
		for n := range i.scopes {
			one := &i.scopes[n]
			if slices.Contains(one.Rights, right) && (one.Profile == "" || profile == "" || one.Profile == profile) &&
				(best == nil || len(one.Rights) < len(best.Rights)) {
				best = one
			}
		}
		if best == nil {
			continue
		}
		names = append(names, best.Name)
		for _, more := range best.Rights {
			given[more] = true
		}
		if best.Profile != "" {
			profile = best.Profile
		}
	}
	return names
}
