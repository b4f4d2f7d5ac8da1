package redact

import (
	"crypto/sha256"
	"encoding/hex"
)

// publishedKeys are keys that have been in the vendor's own samples for years, in the repositories of Firebase and
// Google Maps, the key of Azure's storage emulator, and the values in the examples of RFC 5849, 6455, 6749, 6750 and
// OpenID Connect. They grant no access. They are stored as the first twelve bytes of their SHA-256, so that scanners
// do not report this file as a leak. Gitleaks lists the same keys of Google (its rule gcp-api-key, MIT licence).
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
	"6c96130f130ab0d6d158397e": true,
	"00cf4c781dc37003f7c7dd7d": true,
	"b8e148545b13c78bc74da2f1": true,
	"ca7459e2b26776de081b9a07": true,
	"53f5da0aaa93d64cd5772c55": true,
	"e9974c507d2a802143f614c8": true,
	"ad71fb4165536675d80a8bbf": true,
	"9e309cccd311ea64d04133da": true,
	"3e6099e82cea8b701718e015": true,
	"a71b359a87afde133e6d9731": true,
	"80db82fffae6d59f3240e593": true,
	"2ff8b0fb93aca981c78f1e94": true,
	"80f8b7c904d4a43f3b7036db": true,
	"4c20e6f5cc11b93731e74cbe": true,
	"6aa14267d94944e6b6483c81": true,
	"bb9b1163338b2a51495834ad": true,
	"649e1f5c769e718ba10d1a70": true,
	"293257ab6495ebb11cf9e4ae": true,
	"7f44193a6edea087f5c08113": true,
	"ea9bdfd02c0c412c8cc36ba6": true,
	"0011cc25eb4320717494d270": true,
}

// isPublished reports whether a value is one of publishedKeys.
func isPublished(value []byte) bool {
	if len(value) < 10 || len(value) > 88 {
		return false
	}
	sum := sha256.Sum256(value)
	return publishedKeys[hex.EncodeToString(sum[:12])]
}

// isGoogleKey reports whether a value is a key of Google, and not a placeholder in its samples.
func isGoogleKey(value []byte) bool {
	rest := value[len("AIza"):]
	return notDummy(rest) && !isRepetitive(rest) && !isCounted(rest) && !isPublished(value)
}
