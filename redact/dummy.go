package redact

import (
	"bytes"
	"strings"
)

// dummyWords matches what documentation shows instead of a token.
var dummyWords = compile(
	`(?i)example|placeholder|your[_\-]|[_\-]here\b|insert[_\-]|replace[_\-]?me|redacted|changeme|access_?token|xxxxx|` +
		`xxxx[\-_]xxxx|\*\*\*\*|####|\.\.\.\.|dummy|goes[_\-]?here`)

// notDummy reports whether a value with the form of a token may be a token, and is not a
// placeholder of documentation. Values longer than 400 bytes can contain any of the short words by
// chance and are accepted.
func notDummy(value []byte) bool {
	return !isFiller(value) && !hasFillerParts(value) && (len(value) > 400 || !dummyWords.Match(value))
}

// hasFillerParts reports whether the long parts of a value are repeated digits or capitals, or a UUID of examples ends
// it: 5555555555:AAAAAAAAAA, RGAPI-01234567-89ab-cdef-0123-456789abcdef.
func hasFillerParts(value []byte) bool {
	if uuid := value[max(0, len(value)-36):]; zeroUUID.Match(uuid) {
		return true
	}
	filler := false
	isBetween := func(r rune) bool { return strings.ContainsRune(".-_:", r) }
	for part := range bytes.FieldsFuncSeq(value, isBetween) {
		same := len(part) > 0 && part[0] < 'a' && allSame(part)
		if !same && len(part) >= 6 {
			return false
		}
		filler = filler || same && len(part) >= 8
	}
	return filler
}

// isToken reports whether a value with the form of a token may be a token: the part after its
// prefix is neither a placeholder nor repetitive.
func isToken(value []byte) bool {
	rest := value
	if i := bytes.LastIndexAny(value[:min(len(value), 16)], "-_"); i >= 0 && len(value)-i > 16 {
		rest = value[i+1:]
	}
	return notDummy(value) && !isRepetitive(rest)
}

// isFiller reports whether a value consists mostly of characters used as placeholders: zeros, x,
// asterisks.
func isFiller(value []byte) bool {
	filler := 0
	for _, c := range value {
		if bytes.IndexByte([]byte("0xX*.#_-"), c) >= 0 {
			filler++
		}
	}
	return len(value) >= 8 && filler*10 >= len(value)*7
}

// monotonous reports whether a value is mostly one repeated character: zeros, a row of x, AAAA.
func monotonous(value []byte) bool {
	if len(value) < 8 {
		return false
	}
	var counts [256]int
	most, distinct := 0, 0
	for _, c := range value {
		if counts[c]++; counts[c] == 1 {
			distinct++
		}
		most = max(most, counts[c])
	}
	return distinct <= 2 || most*10 >= len(value)*7
}

// isRepetitive reports whether a value is one repeated character with few others between, or a
// sequence of two or three that repeats: aaaa, 1111=, 123123.
func isRepetitive(value []byte) bool {
	if len(value) < 16 {
		return false
	}
	for period := range 3 {
		if bytes.Equal(value[:len(value)-period-1], value[period+1:]) {
			return true
		}
	}
	return entropy(value) < 0.5
}

// isKeyBlock reports whether an armoured private key (RFC 7468, RFC 4880) contains more than a few
// words, and is not code that searches for one.
func isKeyBlock(block []byte) bool {
	_, body, _ := bytes.Cut(block[len("-----BEGIN"):], []byte("-----"))
	body, _, _ = bytes.Cut(body, []byte("-----END"))
	return armoured.Match(body) && !monotonous(body) && entropy(body) >= 2
}

// armoured matches the text of a key after its first line, plain or as a string in code: line
// breaks, headers, base64.
var armoured = compile(`\A(?:\s|\\[nr]|["'+,])*(?:[A-Za-z\-]+: |[A-Za-z0-9+/=\s\\]{16}|[^\n]{1,40}?[A-Za-z0-9+/=]{48})`)

// isCounted reports whether at least three quarters of the letters and digits of a value are in
// ascending order, consecutive or interleaved (abcdef123456, abc123-def456, a1b2c3d4). People type
// such values when they make up a token.
func isCounted(value []byte) bool {
	value = onlyAlnum(value)
	if len(value) < 12 {
		return false
	}
	most := 0
	for _, step := range []int{1, 2} {
		inRuns := 0
		for first := range step {
			inRuns += countedBytes(value[first:], step)
		}
		most = max(most, inRuns)
	}
	return most*4 >= len(value)*3
}

// onlyAlnum returns the letters and digits of a value.
func onlyAlnum(value []byte) []byte {
	kept := make([]byte, 0, len(value))
	for _, c := range value {
		if isAlnum(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

// shortestRun is the minimum number of ascending characters that is not a coincidence.
const shortestRun = 3

// countedBytes looks at every step-th byte of a value and returns how many of them are in ascending
// runs.
func countedBytes(value []byte, step int) int {
	sum, run := 0, 1
	for at := step; at < len(value)+step; at += step {
		if at < len(value) && isNext(value[at-step]|0x20, value[at]|0x20) {
			run++
			continue
		}
		if run >= shortestRun {
			sum += run
		}
		run = 1
	}
	return sum
}

// isNext reports whether b follows a in the alphabet or in the digits, or whether one of these
// sequences ends with a and the other begins with b.
func isNext(a, b byte) bool {
	switch {
	case a == 'z' || a == '9' || a == '0':
		return isDigit(b) && b <= '1' || b == 'a' || a == '0' && b == '1'
	case b == '1' || b == '0':
		return isLetter(a) || a == '9'
	}
	return isAlnum(a) && isAlnum(b) && b == a+1
}
