package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	files "github.com/airlock-mcp/airlock/internal/store"
)

const (
	signKeyFile  = "audit-sign.key"
	verifierFile = "audit-sign.pub" // the public half, for those who verify
	signerName   = "airlock-audit"
	ed25519Note  = 1 // the algorithm's number in a note's keys
)

// signingKey is the private key of a log, in the form of the note package.
type signingKey struct {
	seed   []byte
	public verifyingKey
	cached note.Signer // the one for the origin that was asked for last
}

// verifyingKey is the public key of a log, of any name.
type verifyingKey struct{ key []byte }

// signer returns a signer whose name is the origin, as C2SP asks for.
func (k *signingKey) signer(origin string) (note.Signer, error) {
	if k.cached != nil && k.cached.Name() == origin {
		return k.cached, nil
	}
	text := fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s", origin, k.public.hash(origin),
		base64.StdEncoding.EncodeToString(append([]byte{ed25519Note}, k.seed...)))
	signer, err := note.NewSigner(text)
	if err != nil {
		return nil, fmt.Errorf("signing as %q: %w", origin, err)
	}
	k.cached = signer
	return signer, nil
}

// named is the public key under a name, as a witness takes it.
func (k verifyingKey) named(name string) string {
	return fmt.Sprintf("%s+%08x+%s", name, k.hash(name),
		base64.StdEncoding.EncodeToString(append([]byte{ed25519Note}, k.key...)))
}

func (k verifyingKey) hash(name string) uint32 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%c%s", name, ed25519Note, k.key))
	return binary.BigEndian.Uint32(sum[:4])
}

// verifier returns a verifier of the signatures on notes of an origin. Those of
// the earlier format are signed under one name.
func (k verifyingKey) verifier(origin string) (note.Verifier, error) {
	if origin == legacyTop {
		origin = signerName
	}
	return note.NewVerifier(k.named(origin))
}

// parseVerifyingKey reads a note's verifier key (vkey) of any name.
func parseVerifyingKey(text string) (verifyingKey, error) {
	text = strings.TrimSpace(text)
	if _, err := note.NewVerifier(text); err != nil {
		return verifyingKey{}, err
	}
	parts := strings.SplitN(text, "+", 3)
	data, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(data) != 1+ed25519.PublicKeySize || data[0] != ed25519Note {
		return verifyingKey{}, errors.New("it is not an Ed25519 key")
	}
	return verifyingKey{data[1:]}, nil
}

// loadSigningKey reads the signing key in the directory, or makes it at first
// use, and puts its public half beside it.
func loadSigningKey(directory string) (signingKey, error) {
	fail := func(err error) (signingKey, error) {
		return signingKey{}, fmt.Errorf("the signing key of the audit log: %w", err)
	}
	pair, err := files.Secret(filepath.Join(directory, signKeyFile), func() ([]byte, error) {
		secret, public, err := note.GenerateKey(rand.Reader, signerName)
		return []byte(secret + "\n" + public + "\n"), err
	})
	if err != nil {
		return fail(err)
	}
	key, public, err := parseSigningKey(string(pair))
	if err != nil {
		return fail(fmt.Errorf("%q is damaged", filepath.Join(directory, signKeyFile)))
	}
	path := filepath.Join(directory, verifierFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, []byte(public+"\n"), 0o644); err != nil {
			return fail(err)
		}
	}
	return key, nil
}

func parseSigningKey(pair string) (_ signingKey, public string, err error) {
	secret, rest, _ := strings.Cut(pair, "\n")
	public, _, _ = strings.Cut(rest, "\n")
	if _, err := note.NewSigner(secret); err != nil {
		return signingKey{}, "", err
	}
	parts := strings.SplitN(secret, "+", 5)
	data, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(data) != 1+ed25519.SeedSize {
		return signingKey{}, "", errors.New("it is not an Ed25519 key")
	}
	seed := data[1:]
	key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return signingKey{seed: seed, public: verifyingKey{key}}, public, nil
}
