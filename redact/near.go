package redact

import (
	"bytes"
	"strings"
)

// The maximum distances between a random value and the word that identifies it.
const (
	nearAfter  = 40
	nearBefore = 160
)

// nearWords are the terms for a credential in a sentence.
func nearWords() []string {
	return []string{"api key", "apikey", "api_key", "api-key", "access key", "secret key", "secret", "token",
		"password", "passphrase", "passcode", "credential", "private key", "auth key", "signing key", "encryption key",
		"pwd"}
}

// nearby finds a random value in the same sentence as such a term: "the token for staging is
// 8f14…", "8f14… is our API key".
func nearby(text []byte, at, size int) (place, bool) {
	if at > 0 && isWord(text[at-1]) || at+size < len(text) && isWord(text[at+size]) && text[at+size]|0x20 != 's' {
		return place{}, false
	}
	if bytes.HasSuffix(text[:at], []byte("::")) && resourceType.FindIndex(text[max(0, at-maxName):at]) != nil {
		return place{}, false
	}
	from := at + size
	window := text[from:min(len(text), from+nearAfter+maxToken)]
	if hasDigit(window[:min(len(window), 2*nearAfter)]) {
		if s, ok := nearAfterWord(window); ok {
			return place{from + s.start, from + s.end, len(window)}, true
		}
	}
	if s, ok := generatedAfter(window); ok {
		return place{from + s.start, from + s.end, 24 * s.end}, true
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

// generatedAfter finds a generated password after a word in a sentence: quoted, or up to the next space.
func generatedAfter(window []byte) (span, bool) {
	m := generatedNear.FindSubmatchIndex(window[:min(len(window), nearAfter+maxTyped)])
	if m == nil {
		return span{}, false
	}
	for group := 2; group < len(m); group += 2 {
		if m[group] >= 0 {
			value := bytes.TrimRight(window[m[group]:m[group+1]], ".,;:")
			isSecret := isGenerated(value) || isEncodedSecret(value) ||
				stated.Match(window[:m[group]]) && isStated(value)
			return span{start: m[group], end: m[group] + len(value)}, isSecret
		}
	}
	return span{}, false
}

// stated matches the text between a word and its value in quotes: the token is "…".
var stated = compile(`^s?[ \t](?:is|was|to|now)(?:[ \t](?:now|set to))?[ \t]["'` + "`" + `]$`)

// isStated reports whether a quoted value that a sentence states is neither words nor a name, a path or code.
func isStated(b []byte) bool {
	return len(b) >= 10 && bytes.IndexByte(b, ' ') < 0 && (changes(b) >= 2 || signKinds(b) >= 3) && notPlaceholder(b) &&
		notDummy(b) && !isCounted(b) && !isAddress(b) && !identifier.Match(b) && !joined.Match(b) && !isReference(b) &&
		!versioned.Match(b) && !isUUID(b) && passwordText(b)
}

var generatedNear = compile(`^s?(?:[ \t][^\n"'` + "`" + `=]{0,40}?)?[ \t](?:"([^"\n]{10,120})"|'([^'\n]{10,120})'|` +
	"`([^`\\n]{10,120})`" + `)|^s?(?:[ \t](?:is|was|to|-|–|—|now)){0,2}[ \t]{1,3}([^\s"'` + "`" + `]\S{9,119})`)

func hasDigit(b []byte) bool { return bytes.ContainsAny(b, "0123456789") }

// maxToken is the maximum number of bytes of a random value in a sentence that are examined.
const maxToken = 300

var (
	drawnAfter = compile(`^s?[ \t"'` + "`" + `:*(\[](?:[^\n=;{}<>@/\\]{0,40}?["'` + "`" +
		`(\[ *])?([A-Za-z0-9_\-+/.~]{16,}={0,2})(?:[\s"'` + "`" + `)\],;!?*]|$)`)
	drawnBefore = compile(`(?:^|[\s"'` + "`" + `(\[*])([A-Za-z0-9_\-+/.~]{16,}={0,2})["'` + "`" +
		`)\]*]{0,2}(?: is| was| as|,| -| –| —| \(|:)(?: (?:the|our|my|your|his|her|their|an?|new|old|current|valid|` +
		`staging|production|prod))* $`)
	aboutDigest = compile(
		`(?i)\b(?:sha\d*|digest|hash|checksum|fingerprint|commit|revision|version|uuid|id|public|integrity|length|` +
			`count|path|file|url|type|class|function|method|name|see|create[ds]?|removed?|update[ds]?|https?)\b`)
)

// isNear is stricter than isDrawn, because only a word in a sentence identifies the value.
func isNear(b []byte) bool {
	b = bytes.TrimRight(b, ".")
	return len(b) >= 16 && looksRandom(b) && notDummy(b) && !isUUID(b) && entropy(b) >= 3.2 &&
		changes(b) >= max(4, len(b)/6) && bytes.Count(b, []byte("/")) <= 1 && bytes.Count(b, []byte(".")) <= 2
}

// afterVendor finds a random value after the name of a service, with at most a few words between them:
// keenio '15AP0W…', toggl key - '5hj12f…'. read is the number of bytes that were examined.
func afterVendor(window []byte) (s span, read int, ok bool) {
	if len(window) == 0 || window[0] == '.' || window[0] == '/' || !hasDigit(window[:min(len(window), 2*nearAfter)]) {
		return span{}, 0, false
	}
	m := vendorValue.FindSubmatchIndex(window)
	if m == nil {
		return span{}, len(window) / 4, false
	}
	between, value := window[:m[2]], window[m[2]:m[3]]
	if aboutDigest.Match(between) || typedID.Match(value) || published.Match(value) || isMisshapen(value) ||
		!isNear(value) {
		return span{}, len(window), false
	}
	isQuoted := bytes.ContainsAny(between[len(between)-1:], "\"'`")
	return span{start: m[2], end: m[3]}, len(window), !isHexText(value) || isQuoted && len(between) <= 6
}

var (
	vendorValue = compile(`^[\w\-]{0,24}(?:[ \t]{1,3}[A-Za-z]{2,16}){0,3}["']?(?:[ \t]{0,8}(?:[:=|]|=>|:=)[ \t]{0,8}|` +
		`[ \t]{1,8}(?:-[ \t]{1,8})?)["'` +
		"`" + `]?([A-Za-z0-9_\-+/.~]{16,}={0,2})(?:[\s"'` + "`" + `)\],;!?*&]|$)`)
	// published matches the beginnings of tokens that have a rule.
	published = compile(`^(?:` + next + `)`)
	// typedID matches identifiers with a prefix for their type: cus_NffrFeUfNV2Hib, evt_1NG8Du2eZvKYlo2C.
	typedID = compile(`^[a-z]{2,8}_[A-Za-z0-9]{12,28}$`)
)

// isStrayToken reports whether a value looks random enough to be a token under a name that does not
// indicate a secret: it is not the digest, identifier or path that such names usually have.
func isStrayToken(b []byte) bool {
	if typedID.Match(b) || isCounted(b) || bytes.IndexByte(b, ':') >= 0 {
		return false
	}
	part := longestPart(b)
	return len(part) >= 16 && !isHexText(part) && isNear(b) ||
		len(b) >= 40 && len(b)%4 == 0 && b[len(b)-1] == '=' && mixed(b) && isDrawn(b)
}

// longestPart returns the longest part of a value between dots, hyphens, underscores and slashes.
func longestPart(b []byte) []byte {
	var longest []byte
	for part := range bytes.FieldsFuncSeq(b, func(r rune) bool { return strings.ContainsRune(".-_/", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

func isHexText(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r > 'f' || !isHex(byte(r)) && r != '-' }) < 0
}
