package redact

import "bytes"

// Documentation and tests write tokens that have a vendor's form and are none.
const (
	// minDrawn is the least entropy, in bits per byte, of what was drawn by
	// chance: sixteen hexadecimal digits have less once in a million.
	minDrawn = 2
	// longRun is how many equal, or consecutive, characters chance does not give.
	longRun = 6
)

// dummyWords stand in tokens that documentation shows.
var dummyWords = compile(`(?i)example|placeholder|your[_\-]|[_\-]here\b|insert[_\-]|replace[_\-]?|redacted|changeme|xxxx|dummy`)

// notDummy says whether a value may have been drawn by chance, as real tokens are.
func notDummy(value []byte) bool {
	if entropy(value) < minDrawn || run(value) >= longRun+len(value)/40 {
		return false
	}
	return len(value) > 200 || !dummyWords.Match(value)
}

// run is the length of the longest run of one character, or of characters that
// follow each other as in the alphabet; of the latter only half is counted,
// because people do choose 123456.
func run(value []byte) int {
	longest := 0
	same, next := 1, 1
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case value[i-1]:
			same, next = same+1, 1
		case value[i-1] + 1:
			same, next = 1, next+1
		default:
			same, next = 1, 1
		}
		longest = max(longest, same, next/2)
	}
	return longest
}

// isKeyBlock says whether an armoured private key has more in it than a few words.
func isKeyBlock(block []byte) bool {
	_, body, _ := bytes.Cut(block[len("-----BEGIN"):], []byte("-----"))
	body, _, _ = bytes.Cut(body, []byte("-----END"))
	return len(bytes.Join(bytes.Fields(body), nil)) >= 16 && entropy(body) >= minDrawn
}
