package witness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// ed25519Cosignature is the number of cosignature/v1 in keys of C2SP.
const ed25519Cosignature = 4

// cosigner verifies cosignatures (C2SP tlog-cosignature, Ed25519).
type cosigner struct {
	name string
	key  ed25519.PublicKey
}

// NewCosignatureVerifier reads a witness's public key: name+hash+base64, of
// signature type 4.
func NewCosignatureVerifier(text string) (note.Verifier, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), "+")
	hash, encoded, _ := strings.Cut(rest, "+")
	data, err := base64.StdEncoding.DecodeString(encoded)
	claimed, hashErr := strconv.ParseUint(hash, 16, 32)
	if name == "" || err != nil || hashErr != nil || len(data) != 1+ed25519.PublicKeySize ||
		data[0] != ed25519Cosignature {
		return nil, errors.New("its key is not a witness's public key (name+hash+base64 of type 4, Ed25519)")
	}
	c := &cosigner{name, data[1:]}
	if c.KeyHash() != uint32(claimed) {
		return nil, errors.New("its key is damaged: the hash in it does not fit")
	}
	return c, nil
}

// Name is the witness's name.
func (c *cosigner) Name() string { return c.name }

// KeyHash names the key in a signature.
func (c *cosigner) KeyHash() uint32 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%c%s", c.name, ed25519Cosignature, c.key))
	return binary.BigEndian.Uint32(sum[:4])
}

// Verify reports whether the signature, eight bytes of time and 64 of Ed25519, is valid.
func (c *cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(signature)
	return seconds <= math.MaxInt64 && ed25519.Verify(c.key, cosignedText(seconds, text), signature[8:])
}

func cosignedText(seconds uint64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", seconds), text...)
}
