package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// authorization is one request for a user's consent (OAuth 2.1, section 4.1.1) and what
// its answer must have.
type authorization struct {
	Consent
	redirect string // the exact URI that the answer comes to
}

// newAuthorization draws state and verifier: 256 bits each.
func newAuthorization(redirect string, at serverMetadata) authorization {
	return authorization{Consent{State: randomText(), Verifier: randomText(), Issuer: at.Issuer,
		Sends: at.SendsIssuer}, redirect}
}

func randomText() string {
	raw := make([]byte, 32)
	rand.Read(raw) // never fails
	return encode(raw)
}

// address is the URL that the user opens.
func (a authorization) address(at serverMetadata, client, resource string, scopes []string) (string, error) {
	u, err := url.Parse(at.Authorization)
	if err != nil || at.Authorization == "" {
		return "", errors.New("the authorization server names no authorization endpoint")
	}
	digest := sha256.Sum256([]byte(a.Verifier))
	query := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": client, "redirect_uri": a.redirect, "state": a.State,
		"code_challenge": encode(digest[:]), "code_challenge_method": "S256", "resource": resource, "nonce": a.Nonce,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(scopes) > 0 {
		query.Set("scope", strings.Join(scopes, " "))
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// errForeign is an answer that does not belong to the request: it ends nothing.
var errForeign = errors.New("this is not the answer to the sign-in that is under way")

// DeniedError is a sign-in that the user or the authorization server refused.
type DeniedError struct{ Code string }

// Error names the code.
func (e *DeniedError) Error() string {
	if e.Code == "access_denied" {
		return "the sign-in was refused"
	}
	return "the authorization server ended the sign-in with " + quote(e.Code)
}

// code reads the answer to the request (OAuth 2.1, section 4.1.2; RFC 9207, section 2.4).
// Issuers are compared letter by letter: a server that is mixed up with another gets no
// code of it.
func (a authorization) code(answer url.Values) (string, error) {
	for _, name := range []string{"code", "state", "iss", "error"} {
		if len(answer[name]) > 1 {
			return "", errForeign
		}
	}
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(a.State)) != 1 {
		return "", errForeign
	}
	switch iss := answer.Get("iss"); {
	case iss != "" && iss != a.Issuer:
		return "", fmt.Errorf(
			"the answer comes from %s, and not from the authorization server %s: no code is sent to either", quote(iss),
			quote(a.Issuer))
	case iss == "" && a.Sends:
		return "", fmt.Errorf(
			"the answer does not say that it comes from the authorization server %s, which promises to say so",
			quote(a.Issuer))
	}
	if code := answer.Get("error"); code != "" {
		return "", &DeniedError{code}
	}
	if answer.Get("code") == "" {
		return "", errors.New("the answer has no code")
	}
	return answer.Get("code"), nil
}

// pasted reads the answer from an address that a person has copied.
func (a authorization) pasted(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	want, wantErr := url.Parse(a.redirect)
	if err != nil || wantErr != nil || u.Scheme != want.Scheme || u.Host != want.Host || u.Path != want.Path {
		return "", errForeign
	}
	return a.code(u.Query())
}
