package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"slices"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// signingKey is a key that signs tokens.
type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

func newKey() (*signingKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return &signingKey{uuid.NewString(), key}, err
}

// SignatureAlgorithm, Key and ID are for op.SigningKey.
func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.key }
func (k *signingKey) ID() string                                  { return k.id }

// publicKey is what is published of one.
type publicKey struct{ *signingKey }

// Algorithm, Use and Key are for op.Key.
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }

// SigningKey is the newest key.
func (s *store) SigningKey(context.Context) (op.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[len(s.keys)-1], nil
}

// SignatureAlgorithms are those of the keys.
func (s *store) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

// KeySet is what is published.
func (s *store) KeySet(context.Context) ([]op.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []op.Key
	for _, key := range slices.Backward(s.keys) {
		keys = append(keys, publicKey{key})
	}
	return keys, nil
}

// publicKeyIn reads a public key in PEM.
func publicKeyIn(file string) (crypto.PublicKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the file holds no PEM")
	}
	return x509.ParsePKIXPublicKey(block.Bytes)
}
