// Package agekey keeps the age identities that Airlock makes for itself: one in a
// file that only its user can read.
package agekey

import (
	"fmt"
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
