package redact

import "bytes"

// The maximum distances between a random value and the word that identifies it.
const (
	nearAfter  = 40
	nearBefore = 160
)

// nearWords are the terms for a credential in a sentence.
func nearWords() []string {
	return []string{"api key", "apikey", "api_key", "api-key", "access key", "secret key", "secret", "token", "password", "passphrase", "passcode", "credential", "private key", "auth key", "signing key", "encryption key", "pwd"}
}

// nearby finds a random value in the same sentence as such a term: "the token for staging is
// 8f14…", "8f14… is our API key".
func nearby(text []byte, at, size int) (place, bool) {
	if at > 0 && isWord(text[at-1]) || at+size < len(text) && isWord(text[at+size]) && text[at+size]|0x20 != 's' {
		return place{}, false
	}
	from := at + size
	window := text[from:min(len(text), from+nearAfter+maxToken)]
	if hasDigit(window[:min(len(window), 2*nearAfter)]) {
		if s, ok := nearAfterWord(window); ok {
			return place{from + s.start, from + s.end, len(window)}, true
		}
	}
	before := text[max(0, at-nearBefore):at]
	if !hasDigit(before) {
		return place{cost: len(before)}, false
	}
	if m := drawnBefore.FindSubmatchIndex(before); m != nil && isNear(before[m[2]:m[3]]) {
		start := at - len(before)
		return place{start + m[2], start + m[3], len(window) + len(before)}, true
	}
	return place{cost: len(window) + len(before)}, false
}

func nearAfterWord(window []byte) (span, bool) {
	m := drawnAfter.FindSubmatchIndex(window)
	if m == nil || m[2] > nearAfter || aboutDigest.Match(window[:m[2]]) || !isNear(window[m[2]:m[3]]) {
		return span{}, false
	}
	return span{start: m[2], end: m[3]}, true
}

func hasDigit(b []byte) bool { return bytes.ContainsAny(b, "0123456789") }

// maxToken is the maximum number of bytes of a random value in a sentence that are examined.
const maxToken = 300

var (
	drawnAfter  = compile(`^s?[ \t"'` + "`" + `:*(\[][^\n=;{}<>@/\\]{0,40}?["'` + "`" + `(\[ *]([A-Za-z0-9_\-+/.~]{16,}={0,2})(?:[\s"'` + "`" + `)\],;!?*]|$)`)
	drawnBefore = compile(`(?:^|[\s"'` + "`" + `(\[*])([A-Za-z0-9_\-+/.~]{16,}={0,2})["'` + "`" + `)\]*]{0,2}(?: is| was| as|,| -| –| —| \(|:)(?: (?:the|our|my|your|his|her|their|an?|new|old|current|valid|staging|production|prod))* $`)
	aboutDigest = compile(`(?i)\b(?:sha\d*|digest|hash|checksum|fingerprint|commit|revision|version|uuid|id|public|integrity|length|count|path|file|url|type|class|function|method|name|see|create[ds]?|removed?|update[ds]?|https?)\b`)
)

// isNear is stricter than isDrawn, because only a word in a sentence identifies the value.
func isNear(b []byte) bool {
	b = bytes.TrimRight(b, ".")
	return len(b) >= 16 && isDrawn(b) && notDummy(b) && !isUUID(b) && entropy(b) >= 3.2 && changes(b) >= max(4, len(b)/6) && bytes.Count(b, []byte("/")) <= 1 && bytes.Count(b, []byte(".")) <= 2
}

// saidPassword matches a password in a sentence: "the password for staging is …", "set the password
// to …", "Password (prod): …".
var saidPassword = compile("(?i)\\A(?:password|passphrase|passcode|pwd|passwort|" + foreignPassword + ")(?:'s)?(?: (?:for|of|für|para|pour|per|do) [^\\n=:]{1,40}?| \\([^)\\n]{1,30}\\))?(?:\\*\\*)?(?:(?: ?:| is| was| ist| lautet| es| est| é| è| jest| =| -| –| —|'s)(?: now| set to)?:?(?:\\*\\*)? [\"'`]?| to [\"'`])([^\\s\"'`,;<>(){}\\[\\]]{5,63}[^\\s\"'`,;<>(){}\\[\\].!?:])")

// isSaid requires letters and digits, because most text after such a word is an ordinary word.
func isSaid(b []byte) bool {
	return len(b) >= 6 && hasDigit(b) && !unicodeEscape.Match(b) && bytes.ContainsAny(b, letters) && passwordText(b) && !reference.Match(b) && !identifier.Match(b)
}

// unicodeEscape matches an escape. Text that contains one is searched again after unescaping.
var unicodeEscape = compile(`\\u[0-9A-Fa-f]{4}`)
