// Package secrets finds credentials by reference, so that configuration files
// hold names instead of values, and hands them to the one place that uses them.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// ErrNotFound is returned if a store exists, but has no credential of that name.
var ErrNotFound = errors.New("there is no such credential")

// Options configure the stores of credentials. A store with an empty location is not
// available.
type Options struct {
	// AgeFile is a file encrypted with age (age-encryption.org/v1) that holds a
	// YAML mapping of names to texts, and AgeIdentity the file with the key to it.
	AgeFile     string
	AgeIdentity string
	// KeyringService is the service under which the operating system's keyring
	// has them; empty means "airlock".
	KeyringService string
}

// Store finds credentials. Methods may be called concurrently.
type Store struct {
	opts Options
	age  func() (map[string]secret.Value, error) // decrypts once
}

// New returns a store that looks up credentials in the places of opts, at the first request for each.
func New(opts *Options) *Store {
	s := &Store{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.KeyringService == "" {
		s.opts.KeyringService = "airlock"
	}
	s.age = sync.OnceValues(func() (map[string]secret.Value,
		error) {
		return readAge(s.opts.AgeFile, s.opts.AgeIdentity)
	})
	return s
}

// Schemes are the first parts of references.
func Schemes() []string { return []string{"env", "age", "keyring"} }

// IsReference reports whether a text has the form of a reference: a scheme, a colon, a name.
func IsReference(text string) bool {
	scheme, name, ok := strings.Cut(text, ":")
	return ok && name != "" && slices.Contains(Schemes(), scheme)
}

// Lookup returns the value of a reference: env:NAME, age:NAME or keyring:NAME. The error
// never contains a value.
func (s *Store) Lookup(ctx context.Context, reference string) (secret.Value, error) {
	if !IsReference(reference) {
		return secret.Value{},
			fmt.Errorf("%q is not a reference to a credential: write env:NAME, age:NAME or keyring:NAME", reference)
	}
	scheme, name, _ := strings.Cut(reference, ":")
	v, err := s.lookup(ctx, scheme, name)
	switch {
	case err != nil:
		return secret.Value{}, fmt.Errorf("looking up credential %q: %w", reference, err)
	case v.Reveal() == "":
		return secret.Value{}, fmt.Errorf("looking up credential %q: it is empty", reference)
	}
	return v, nil
}

func (s *Store) lookup(ctx context.Context, scheme, name string) (secret.Value, error) {
	switch scheme {
	case "env":
		text, ok := os.LookupEnv(name)
		if !ok {
			return secret.Value{}, ErrNotFound
		}
		return secret.New(text), nil
	case "age":
		values, err := s.age()
		if err != nil {
			return secret.Value{}, err
		}
		v, ok := values[name]
		if !ok {
			return secret.Value{}, ErrNotFound
		}
		return v, nil
	default:
		return fromKeyring(ctx, s.opts.KeyringService, name)
	}
}
