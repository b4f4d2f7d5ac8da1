package cluster

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Keys are secrets that all nodes of a cluster have. The first one is used. The others are accepted as well, so that it
// can be replaced while nodes serve.
type Keys [][]byte

// Seal encrypts a value for the other nodes. Open decrypts it with the same text about it.
func (k Keys) Seal(value []byte, about string) []byte { return k.seal(value, "about\x00"+about) }

// Open decrypts what a node has sealed. It returns an error if the value or the text about it was changed.
func (k Keys) Open(sealed []byte, about string) ([]byte, error) {
	return k.open(sealed, "about\x00"+about)
}

func (k Keys) seal(value []byte, about string) []byte {
	return cipherOf(k[0]).Seal(nil, nil, value, []byte(about))
}

func (k Keys) open(sealed []byte, about string) (value []byte, err error) {
	for _, key := range k {
		if value, err = cipherOf(key).Open(nil, nil, sealed, []byte(about)); err == nil {
			return value, nil
		}
	}
	return nil, err
}

func cipherOf(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(secretOf(key, "values"))
	if err != nil {
		panic(err) // the length is permitted
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block has 16 bytes
	}
	return seal
}

func secretOf(key []byte, purpose string) []byte {
	secret, err := hkdf.Key(sha256.New, key, nil, purpose, 32)
	if err != nil {
		panic(err) // the length is permitted
	}
	return secret
}

// tag returns the tag of an ID that a node has made. The name and not the epoch identifies the node, because runs that
// wait for people continue in the next process of the node.
func (k Keys) tag(name, rest string) string { return tagOf(k[0], name, rest) }

// isTag reports whether a tag is that of a node, made with any of the keys.
func (k Keys) isTag(tag, name, rest string) bool {
	return slices.ContainsFunc(k, func(key []byte) bool { return tag == tagOf(key, name, rest) })
}

func tagOf(key []byte, name, rest string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(name + "\x00" + rest)) // the name of a node has no zero byte
	return hex.EncodeToString(mac.Sum(nil))[:tagLength]
}
