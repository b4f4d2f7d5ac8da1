package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // the digests of the algorithms below
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// signer signs JWTs (RFC 7515, RFC 7518) with one key. Tokens of others are never
// checked here: they are only handed on.
type signer struct {
	key       crypto.Signer
	algorithm string
	hash      crypto.Hash // 0 for Ed25519
}

// parseKey reads a private key in PEM.
func parseKey(text secret.Value) (signer, error) {
	block, _ := pem.Decode([]byte(text.Reveal()))
	if block == nil {
		return signer{}, errors.New("it is not a private key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil { // its text may quote the key
		if key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
			return signer{}, errors.New("it is not a private key in PEM (PKCS #8)")
		}
	}
	return newSigner(key)
}

// keyOf returns the private key of a client, or nil if none is configured.
func keyOf(text secret.Value) *signer {
	key, err := parseKey(text)
	if err != nil {
		return nil
	}
	return &key
}

func newSigner(key any) (signer, error) {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		switch key.Curve {
		case elliptic.P256():
			return signer{key, "ES256", crypto.SHA256}, nil
		case elliptic.P384():
			return signer{key, "ES384", crypto.SHA384}, nil
		case elliptic.P521():
			return signer{key, "ES512", crypto.SHA512}, nil
		}
	case *rsa.PrivateKey:
		if key.N.BitLen() >= 2048 {
			return signer{key, "RS256", crypto.SHA256}, nil
		}
	case ed25519.PrivateKey:
		return signer{key, "EdDSA", 0}, nil
	}
	return signer{}, errors.New("a key must be P-256, P-384, P-521, Ed25519, or RSA of 2048 bits or more")
}

// generateKey makes a key for DPoP and returns its bytes, too.
func generateKey() (signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signer{}, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return signer{}, nil, err
	}
	s, err := newSigner(key)
	return s, raw, err
}

func signerOf(raw []byte) (signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(raw)
	if err != nil {
		return signer{}, errors.New("the stored key cannot be read")
	}
	return newSigner(key)
}

// sign returns a JWT in its compact form.
func (s signer) sign(header, claims map[string]any) (string, error) {
	header["alg"] = s.algorithm
	var parts [2][]byte
	for i, part := range []map[string]any{header, claims} {
		raw, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts[i] = raw
	}
	input := encode(parts[0]) + "." + encode(parts[1])
	digest := []byte(input)
	if s.hash != 0 {
		h := s.hash.New()
		h.Write(digest) // never fails
		digest = h.Sum(nil)
	}
	var signature []byte
	var err error
	if key, ok := s.key.(*ecdsa.PrivateKey); ok {
		signature, err = signEC(key, digest)
	} else {
		signature, err = s.key.Sign(rand.Reader, digest, s.hash)
	}
	if err != nil {
		return "", err
	}
	return input + "." + encode(signature), nil
}

// signEC writes both numbers with the length of the curve (RFC 7518, section 3.4).
func signEC(key *ecdsa.PrivateKey, digest []byte) ([]byte, error) {
	r, s, err := ecdsa.Sign(rand.Reader, key, digest)
	if err != nil {
		return nil, err
	}
	size := (key.Params().BitSize + 7) / 8
	signature := make([]byte, 2*size)
	r.FillBytes(signature[:size])
	s.FillBytes(signature[size:])
	return signature, nil
}

// jwk is the public key (RFC 7517) of a P-256 key.
func (s signer) jwk() (map[string]any, error) {
	key, ok := s.key.Public().(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key is not a P-256 key")
	}
	point, err := key.Bytes() // 4, X, Y
	if err != nil {
		return nil, err
	}
	return map[string]any{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}, nil
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// newID returns 128 random bits.
func newID() string {
	raw := make([]byte, 16)
	rand.Read(raw) // never fails
	return new(big.Int).SetBytes(raw).Text(36)
}
