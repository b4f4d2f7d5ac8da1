package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	files "github.com/airlock-mcp/airlock/internal/store"
)

const hashKeyFile = "audit-hash.key"

// maxArgumentValues bounds the arguments that are recorded value by value.
const maxArgumentValues = 200

// hasher makes keyed hashes, so that a reader of the log cannot find a
// short value by trying all of them, and the holder of the key can look for one.
type hasher struct{ key []byte }

// loadHasher reads the key in the directory, or makes it at first use.
func loadHasher(directory string) (hasher, error) {
	key, err := files.Secret(filepath.Join(directory, hashKeyFile), func() ([]byte, error) {
		fresh := make([]byte, 32)
		rand.Read(fresh) // never fails: crypto/rand aborts the program instead
		return fresh, nil
	})
	if err != nil {
		return hasher{}, fmt.Errorf("the key of the audit log: %w", err)
	}
	if len(key) != 32 {
		return hasher{}, fmt.Errorf("the key of the audit log: %q has %d bytes, not 32",
			filepath.Join(directory, hashKeyFile), len(key))
	}
	return hasher{key}, nil
}

func (h hasher) sum(b []byte) string {
	mac := hmac.New(sha256.New, h.key)
	mac.Write(b)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// plainName is a member's name that is worth reading and too plain to be data.
var plainName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// shape replaces every value in v, numbers and booleans included, by its keyed
// hash, and every name that may be data as well. It returns nil when there are
// more than maxArgumentValues values.
func (h hasher) shape(v any) json.RawMessage {
	left := maxArgumentValues
	hashed := h.replace(v, &left)
	if left < 0 {
		return nil
	}
	text, err := json.Marshal(hashed)
	if err != nil {
		return nil
	}
	return text
}

func (h hasher) replace(v any, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if !plainName.MatchString(name) {
				name = h.sum([]byte(name))
			}
			out[name] = h.replace(member, left)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = h.replace(item, left)
		}
		return out
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return h.sum(text)
	}
}
