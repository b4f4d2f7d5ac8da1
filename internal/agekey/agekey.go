// Package agekey keeps the age identities that Airlock makes for itself, each in a
// file that only its user can read, and encrypts small texts with them.
package agekey

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/store"
)

// LoadOrCreate reads the identity in a file. It creates the file if it does not exist.
func LoadOrCreate(path string) (*age.X25519Identity, error) {
	text, err := store.Secret(path, func() ([]byte, error) {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			return nil, err
		}
		return []byte(identity.String() + "\n"), nil
	})
	if err != nil {
		return nil, err
	}
	identity, err := age.ParseX25519Identity(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%q holds no age identity", path) // the error would quote the file
	}
	return identity, nil
}

// Load reads the identity in a file, which must be there.
func Load(path string) (*age.X25519Identity, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return LoadOrCreate(path)
}

// Seal encrypts the parts, one after the other, to a recipient.
func Seal(to age.Recipient, parts ...[]byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return nil, fmt.Errorf("encrypting: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	return sealed.Bytes(), nil
}

// Open decrypts what Seal returned. It returns an error if anything was changed.
func Open(sealed []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), with)
	if err != nil {
		return nil, fmt.Errorf("decrypting: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decrypting: %w", err)
	}
	return plain, nil
}
