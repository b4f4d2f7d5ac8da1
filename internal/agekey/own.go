package agekey

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"

	"filippo.io/age"
)

// Own encrypts texts that only the holder of a key writes. It derives a symmetric key from the identity, because
// encrypting to its public key takes longer than storing a small file. It also decrypts texts that were encrypted to
// the public key.
type Own struct {
	key     *Key
	ciphers []cipher.AEAD // one for each identity
}

var (
	_ age.Recipient = (*Own)(nil)
	_ age.Identity  = (*Own)(nil)
)

// stanza is the type of the header of Own. The header contains the encrypted key of the text.
const stanza = "airlock-own"

// OwnOf returns the Own of a key.
func OwnOf(key *Key) *Own {
	o := &Own{key: key}
	for _, identity := range key.identities {
		o.ciphers = append(o.ciphers, cipherOf(identity))
	}
	return o
}

func cipherOf(identity *age.X25519Identity) cipher.AEAD {
	block, err := aes.NewCipher(derive(identity, stanza))
	if err != nil {
		panic(err) // the length is permitted
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block has 16 bytes
	}
	return sealer
}

func derive(identity *age.X25519Identity, purpose string) []byte {
	secret, err := hkdf.Key(sha256.New, []byte(identity.String()), nil, purpose, 32)
	if err != nil {
		panic(err) // the length is permitted
	}
	return secret
}

// Derive returns secrets of 32 bytes for a purpose, one for each identity: the first is that of the identity that
// encrypts. The secrets of two purposes are independent of each other.
func (k *Key) Derive(purpose string) (secrets [][]byte) {
	for _, identity := range k.identities {
		secrets = append(secrets, derive(identity, "airlock "+purpose))
	}
	return secrets
}

// Renew encrypts with the first identity what another one has encrypted, with its public key or as Own. It returns nil
// if that was the first one.
func (k *Key) Renew(sealed []byte) ([]byte, error) {
	if _, err := Open(sealed, OwnOf(Of(k.identities[0]))); err == nil {
		return nil, nil
	}
	plain, err := Open(sealed, OwnOf(k))
	if err != nil {
		return nil, err
	}
	return Seal(k.Recipient(), plain)
}

// Wrap encrypts the key of a text.
func (o *Own) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	return []*age.Stanza{{Type: stanza, Body: o.ciphers[0].Seal(nil, nil, fileKey, nil)}}, nil
}

// Unwrap decrypts the key of a text.
func (o *Own) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if s.Type != stanza {
			continue
		}
		for _, sealer := range o.ciphers {
			if fileKey, err := sealer.Open(nil, nil, s.Body, nil); err == nil {
				return fileKey, nil
			}
		}
		return nil, age.ErrIncorrectIdentity
	}
	return o.key.Unwrap(stanzas)
}
