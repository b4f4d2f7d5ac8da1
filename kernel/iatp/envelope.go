package iatp

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
)

// Envelope is a signed payload (DSSE v1, "Envelope").
type Envelope struct {
	Payload     []byte      `json:"payload"` // canonical JSON; base64 in JSON
	PayloadType string      `json:"payloadType"`
	Signatures  []Signature `json:"signatures"`
}

// Signature is one signature of an envelope.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"` // 64 bytes; base64 in JSON
}

// Types of payloads.
const (
	typeAttestation = "application/vnd.airlock.iatp.attestation+json"
	typeManifest    = "application/vnd.airlock.iatp.manifest+json"
)

// ErrForged is returned if an attestation or manifest was not signed by the agent with a valid key.
var ErrForged = errors.New("the signature is not valid")

// preAuthentication returns the bytes that are signed: DSSE v1, "Signature Definition". The lengths
// make the encoding unambiguous.
func preAuthentication(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

func seal(payloadType string, payload []byte, key Key, private ed25519.PrivateKey) Envelope {
	sig := ed25519.Sign(private, preAuthentication(payloadType, payload))
	return Envelope{Payload: payload, PayloadType: payloadType, Signatures: []Signature{{KeyID: key.ID, Sig: sig}}}
}

// verify verifies an envelope with the keys of an agent. The key ID only selects a key: it is not
// signed.
func (e Envelope) verify(payloadType string, keys []Key) (Key, error) {
	if e.PayloadType != payloadType || len(e.Signatures) == 0 || len(e.Signatures) > maxSignatures {
		return Key{}, ErrForged
	}
	signed := preAuthentication(e.PayloadType, e.Payload)
	for _, s := range e.Signatures {
		for _, key := range keys {
			if s.KeyID == key.ID && len(s.Sig) == ed25519.SignatureSize && ed25519.Verify(key.Public, signed, s.Sig) {
				return key, nil
			}
		}
	}
	return Key{}, ErrForged
}

// maxSignatures limits the work for one envelope.
const maxSignatures = 8

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
