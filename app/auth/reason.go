package auth

import (
	"errors"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// Reason is why a token is refused, for the operator's log and metrics. It is one of the constants
// below. A client only gets the error codes of RFC 6750, section 3.1.
type Reason string

// The reasons.
const (
	Malformed      Reason = "malformed"       // it does not have the form of a token, or is not sent in a supported way
	Unknown        Reason = "unknown"         // Airlock has not issued this token
	Expired        Reason = "expired"         // it has expired
	Revoked        Reason = "revoked"         // it was revoked with airlock tokens revoke
	Ended          Reason = "ended"           // something it depends on is not in force any more: a token, a profile
	NotYetValid    Reason = "not_yet_valid"   // its nbf or iat is in the future
	WrongType      Reason = "wrong_type"      // its typ is not in auth.types
	WrongAlgorithm Reason = "wrong_algorithm" // a signature that others than the issuer could make, or no signature
	WrongIssuer    Reason = "wrong_issuer"    // its iss is not auth.issuer
	WrongAudience  Reason = "wrong_audience"  // it is for another service or another MCP endpoint
	UnknownKey     Reason = "unknown_key"     // the issuer has no key of that ID and algorithm
	BadSignature   Reason = "bad_signature"   // the signature does not match the key
	BadClaims      Reason = "bad_claims"      // no subject, no end, an end too far away, or a claim of the wrong type
	MissingScope   Reason = "missing_scope"   // it is valid but lacks a scope
	TwoProfiles    Reason = "two_profiles"    // it is valid but its scopes name several profiles
)

// InvalidError is ErrInvalid with details for the operator. Error does not return them.
type InvalidError struct {
	Reason  Reason
	TokenID string // of a known token that Airlock issued
	// KeyID and Issuer are copied from the token and not verified. They are empty unless they have
	// the form of a short word and a short URL.
	KeyID, Issuer string
}

// Error returns the text of ErrInvalid.
func (e *InvalidError) Error() string { return ErrInvalid.Error() }

// Unwrap returns ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(reason Reason) error { return &InvalidError{Reason: reason} }

// ReasonOf returns why a token is refused, for an error of Identify or Token or a *ScopeError. It
// returns false if the error does not refuse a token or the request can be sent again.
func ReasonOf(err error) (Reason, bool) {
	var told *InvalidError
	var lacks *ScopeError
	switch {
	case errors.As(err, &told):
		return told.Reason, true
	case errors.As(err, &lacks):
		return MissingScope, true
	case errors.Is(err, ErrProfiles):
		return TwoProfiles, true
	case errors.Is(err, ErrInvalid):
		return Malformed, true
	}
	return "", false
}

// The forms of key IDs and issuers that may be logged.
var (
	keyIDShape  = lazyregexp.New(`^[A-Za-z0-9._~:+/=-]{1,64}$`)
	issuerShape = lazyregexp.New(`^https?://[A-Za-z0-9.-]{1,64}(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]{0,64})?$`)
)

// refused returns the error for a JWT. If the signature could not be verified and the token claims
// another issuer, the reason is WrongIssuer, because Airlock cannot know that issuer's keys.
func (i *Issuer) refused(token *jwt.JSONWebToken, reason Reason) error {
	told := &InvalidError{Reason: reason}
	var claimed jwt.Claims
	readable := token.UnsafeClaimsWithoutVerification(&claimed) == nil // for the log alone
	if (reason == UnknownKey || reason == BadSignature) && readable && claimed.Issuer != i.config.Issuer {
		told.Reason = WrongIssuer
	}
	if len(token.Headers) == 1 && keyIDShape.MatchString(token.Headers[0].KeyID) {
		told.KeyID = token.Headers[0].KeyID
	}
	if readable && issuerShape.MatchString(claimed.Issuer) {
		told.Issuer = claimed.Issuer
	}
	return told
}

// reasonOfParse returns why a text could not be parsed as a JWT.
func reasonOfParse(err error) Reason {
	if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
		return WrongAlgorithm
	}
	return Malformed
}

// reasonOfClaims returns why the registered claims of a token are refused.
func reasonOfClaims(err error) Reason {
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return WrongIssuer
	case errors.Is(err, jwt.ErrInvalidAudience):
		return WrongAudience
	case errors.Is(err, jwt.ErrExpired):
		return Expired
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return NotYetValid
	}
	return BadClaims
}
