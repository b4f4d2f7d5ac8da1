package agents

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// tokenPrefix is the prefix of every agent token.
const tokenPrefix = "qwed_agent_"

// encoding produces names that are easy to select and to read aloud.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newID returns the ID of an agent: "agent_" and 80 random bits.
func newID() string {
	raw := make([]byte, 10)
	_, _ = rand.Read(raw) // never fails
	return "agent_" + encoding.EncodeToString(raw)
}

// newToken returns a token of 256 random bits.
func newToken() secret.Value {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return secret.New(tokenPrefix + hex.EncodeToString(raw))
}

// hashToken returns the stored form of a token. It needs no salt and no slow hash, because a token
// is random.
func hashToken(token secret.Value) []byte {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return sum[:]
}

// markOf returns an identifier of a token, derived from its hash.
func markOf(hash []byte) string {
	if len(hash) < 8 {
		return ""
	}
	return hex.EncodeToString(hash[:8])
}

// IsToken reports whether a text has the form of an agent's token.
func IsToken(text string) bool {
	digits, ok := strings.CutPrefix(text, tokenPrefix)
	return ok && len(digits) == 64
}
