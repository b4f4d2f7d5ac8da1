package oauth

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"time"
)

// proof returns the DPoP proof for one request (RFC 9449, section 4.2). token is the
// access token that goes along, empty at the token endpoint; nonce is what the server
// asked for, empty before.
func (s signer) proof(method, address, token, nonce string, now time.Time) (string, error) {
	key, err := s.jwk()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.RawQuery, u.Fragment, u.ForceQuery = "", "", false
	claims := map[string]any{"jti": newID(), "htm": method, "htu": u.String(), "iat": now.Unix()}
	if token != "" {
		digest := sha256.Sum256([]byte(token))
		claims["ath"] = encode(digest[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	return s.sign(map[string]any{"typ": "dpop+jwt", "jwk": key}, claims)
}

// dpopNonce is the header in which a server sends the nonce of the next proof.
const dpopNonce = "DPoP-Nonce"

// maxNonce bounds a nonce, in bytes.
const maxNonce = 4 << 10

// nonceOf returns the nonce that a server asks for, or an empty string.
func nonceOf(header http.Header) string {
	if nonce := header.Get(dpopNonce); len(nonce) <= maxNonce {
		return nonce
	}
	return ""
}
