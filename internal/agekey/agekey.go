// Package agekey keeps the age identities that Airlock makes for itself, each in a
// file that only its user can read, and encrypts small texts with them.
package agekey

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/store"
)

// Key is the content of one file: the identity that encrypts, and earlier ones that only decrypt. It is an
// age.Identity and safe for concurrent use.
type Key struct{ identities []*age.X25519Identity }

// Of returns a key with one identity.
func Of(identity *age.X25519Identity) *Key { return &Key{[]*age.X25519Identity{identity}} }

// Recipient returns the public key that texts are encrypted to.
func (k *Key) Recipient() *age.X25519Recipient { return k.identities[0].Recipient() }

// Has reports whether one of the identities has a recipient.
func (k *Key) Has(recipient string) bool {
	return slices.ContainsFunc(k.identities, func(one *age.X25519Identity) bool {
		return one.Recipient().String() == recipient
	})
}

// Unwrap decrypts the key of a text with the identity that it was encrypted to.
func (k *Key) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, identity := range k.identities {
		fileKey, err := identity.Unwrap(stanzas)
		if !errors.Is(err, age.ErrIncorrectIdentity) {
			return fileKey, err
		}
	}
	return nil, age.ErrIncorrectIdentity
}

// LoadOrCreate reads the key in a file. It creates the file if it does not exist.
func LoadOrCreate(path string) (*Key, error) {
	text, err := store.Secret(path, newIdentity)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Create makes a key in a new file.
func Create(path string) (*Key, error) {
	text, err := newIdentity()
	if err == nil {
		err = store.CreateFile(path, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

func newIdentity() ([]byte, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return []byte(identity.String() + "\n"), nil
}

// Parse reads a key from the text of a file. path is for errors.
func Parse(path string, text []byte) (*Key, error) {
	k := &Key{}
	for line := range strings.Lines(string(text)) {
		identity, err := age.ParseX25519Identity(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%q holds no age identity", path) // the error would quote the file
		}
		k.identities = append(k.identities, identity)
	}
	if len(k.identities) == 0 {
		return nil, fmt.Errorf("%q holds no age identity", path)
	}
	return k, nil
}

// Load reads the key in a file, which must be there.
func Load(path string) (*Key, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return LoadOrCreate(path)
}

// isKey reports whether a text begins like the content of a file of this package.
func isKey(text []byte) bool { return bytes.HasPrefix(text, []byte("AGE-SECRET-KEY-1")) }

// Rotate puts a new identity before those in a file, and its public key into the file recipient if there is one. It
// returns false if the file at path has no age identities. No process may use the key meanwhile.
func Rotate(path, recipient string) (bool, error) {
	text, err := store.ReadFile(path)
	if err != nil || !isKey(text) {
		return false, err
	}
	fresh, err := newIdentity()
	if err != nil {
		return false, err
	}
	text = append(fresh, text...)
	k, err := Parse(path, text)
	if err != nil {
		return false, err
	}
	if err := store.WriteFile(path, text, 0o600); err != nil {
		return false, err
	}
	if _, err := os.Stat(recipient); err != nil {
		return true, nil
	}
	return true, store.WriteFile(recipient, []byte(k.Recipient().String()+"\n"), 0o644)
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
