package auth

import (
	"errors"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// Reason is why a token is refused, for the operator's log and metrics: one of the few
// that stand here. A client is told no more than RFC 6750, section 3.1, has.
type Reason string

// The reasons.
const (
	Malformed      Reason = "malformed"       // it has not the form of a token, or comes in no way that is taken
	Unknown        Reason = "unknown"         // Airlock has made no such token
	Expired        Reason = "expired"         // its end is over
	Revoked        Reason = "revoked"         // airlock tokens revoke
	Ended          Reason = "ended"           // what it was made with is not in force any more: a token, a profile
	NotYetValid    Reason = "not_yet_valid"   // it begins later, or was issued later, than the clock says
	WrongType      Reason = "wrong_type"      // its typ is not in auth.types
	WrongAlgorithm Reason = "wrong_algorithm" // a signature that others than the issuer could make, or none
	WrongIssuer    Reason = "wrong_issuer"    // it says that it is another's than auth.issuer
	WrongAudience  Reason = "wrong_audience"  // it is for another service, or another face
	UnknownKey     Reason = "unknown_key"     // the issuer has no key of that ID and algorithm
	BadSignature   Reason = "bad_signature"   // the key has not made its signature
	BadClaims      Reason = "bad_claims"      // no subject, no end, an end too far away, or a claim of the wrong type
	MissingScope   Reason = "missing_scope"   // it is valid, and not enough
	TwoProfiles    Reason = "two_profiles"    // it is valid, and its scopes name several profiles
)

// InvalidError is ErrInvalid with what an operator may know. Its text says none of it.
type InvalidError struct {
	Reason  Reason
	TokenID string // of a token of Airlock's own that there is
	// KeyID and Issuer are as the token says, which may be a lie, where they look like
	// those of real tokens: a short word, and a short URL. Else they are empty.
	KeyID, Issuer string
}

// Error is the text of ErrInvalid.
func (e *InvalidError) Error() string { return ErrInvalid.Error() }

// Unwrap is ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(reason Reason) error { return &InvalidError{Reason: reason} }

// ReasonOf is why an error of Identify or Token, or a *ScopeError, refuses a token; false
// where it is about no token, or the request can be sent again.
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

// What a key ID and an issuer look like that may be logged.
var (
	keyIDShape  = lazyregexp.New(`^[A-Za-z0-9._~:+/=-]{1,64}$`)
	issuerShape = lazyregexp.New(`^https?://[A-Za-z0-9.-]{1,64}(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]{0,64})?$`)
)

// refused is the error of a JWT. One that is not proved to be the issuer's, and says that
// it is another's, is refused as that: its key cannot be known here.
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

// reasonOfParse is why a text is not read as a JWT.
func reasonOfParse(err error) Reason {
	if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
		return WrongAlgorithm
	}
	return Malformed
}

// reasonOfClaims is why the registered claims of a token are refused.
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
