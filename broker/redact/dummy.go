package redact

import "bytes"

// dummyWords stand in what documentation shows in the place of a token.
var dummyWords = compile(`(?i)example|placeholder|your[_\-]|[_\-]here\b|insert[_\-]|replace[_\-]?me|redacted|changeme|access_?token|xxxx|\*\*\*\*|\.\.\.\.|dummy`)

// notDummy says whether a value that has a token's form may be one, and is not
// what documentation puts in its place. Long values have any short word in
// them by chance.
func notDummy(value []byte) bool {
	return !isFiller(value) && (len(value) > 400 || !dummyWords.Match(value))
}

// isFiller says whether a value is filled with what stands in the place of a
// token: zeros, x, stars.
func isFiller(value []byte) bool {
	filler := 0
	for _, c := range value {
		if bytes.IndexByte([]byte("0xX*.#_-"), c) >= 0 {
			filler++
		}
	}
	return len(value) >= 8 && filler*10 >= len(value)*7
}

// monotonous says whether a value is hardly more than one character again and
// again: zeros, a row of x, AAAA.
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

// isRepetitive says whether a value is one character again and again, with hardly
// another between: aaaa, 1111=.
func isRepetitive(value []byte) bool { return len(value) >= 16 && entropy(value) < 0.5 }

// isKeyBlock says whether an armoured private key (RFC 7468, RFC 4880) has more
// in it than a few words, and is not code that looks for one.
func isKeyBlock(block []byte) bool {
	_, body, _ := bytes.Cut(block[len("-----BEGIN"):], []byte("-----"))
	body, _, _ = bytes.Cut(body, []byte("-----END"))
	return armoured.Match(body) && !monotonous(body) && entropy(body) >= 2
}

// armoured is how a key goes on behind its first line, as it is or as a text
// in code: line breaks, headers, base64.
var armoured = compile(`\A(?:\s|\\[nr]|["'+,])*(?:[A-Za-z\-]+: |[A-Za-z0-9+/=\s\\]{16}|[^\n]{1,40}?[A-Za-z0-9+/=]{48})`)
