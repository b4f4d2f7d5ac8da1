package redact

import (
	"crypto/sha256"
	"encoding/hex"
)

// publishedKeys are keys that have been in the vendor's own samples for years, in the repositories
// of Firebase and Google Maps. They grant no access. They are stored as the first twelve bytes of
// their SHA-256, so that scanners do not report this file as a leak. Gitleaks lists the same keys
// (its rule gcp-api-key, MIT licence).
var publishedKeys = map[string]bool{
	"27a9a42931dff7eb2f8434e2": true,
	"49f777db995e8260da7ca9ff": true,
	"a6c814bc555ae62c7bd8b58e": true,
	"8731261cb72d86267a32a532": true,
	"37f8f09bdf12c2f2eae4ead7": true,
	"eb540d2b6ee2a0a47c5779bc": true,
	"2037abcaffb2b77785da716c": true,
	"3a8b61d0f636b007840c0d40": true,
	"4c98242dcadc8b29005c6b4a": true,
	"ea9bb1082cf95663f5faca23": true,
	"3f370c9dd8225c63b5c77de1": true,
	"a19f89ab3555eac10c40741f": true,
	"e4a5542bb7fd7b67e943c71a": true,
	"dc0fcf046c61640cbd1e8b99": true,
	"0b476bdf9acf2123d547b5ae": true,
}

// isPublished reports whether a value is one of publishedKeys.
func isPublished(value []byte) bool {
	sum := sha256.Sum256(value)
	return publishedKeys[hex.EncodeToString(sum[:12])]
}

// isGoogleKey reports whether a value is a key of Google, and not a placeholder in its samples.
func isGoogleKey(value []byte) bool {
	rest := value[len("AIza"):]
	return notDummy(rest) && !isRepetitive(rest) && !isCounted(rest) && !isPublished(value)
}
