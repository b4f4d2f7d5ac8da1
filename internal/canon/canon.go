// Package canon makes JSON canonical and digests it, so that equal values have
// equal bytes wherever they were written.
package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

// JSON returns the canonical form of one JSON value (RFC 8785, JSON
// Canonicalization Scheme). Numbers are read as IEEE 754 doubles, as the RFC
// demands; a number that no double can hold is an error.
func JSON(raw []byte) ([]byte, error) {
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return out, nil
}

// Marshal encodes v as canonical JSON.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return JSON(raw)
}

// Digest returns "sha256:" and the hex SHA-256 of the bytes as they are.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
