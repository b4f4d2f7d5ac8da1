package redact

import "bytes"

// dummyWords stand in what documentation shows in the place of a token.
var dummyWords = compile(`(?i)example|placeholder|your[_\-]|[_\-]here\b|insert[_\-]|replace[_\-]?me|redacted|changeme|xxxx|\*\*\*\*|\.\.\.\.|dummy`)

// notDummy says whether a value that has a token's form may be one, and is not
// what documentation puts in its place. Long values have any short word in
// them by chance.
func notDummy(value []byte) bool { return len(value) > 400 || !dummyWords.Match(value) }

// isKeyBlock says whether an armoured private key has more in it than a few words.
func isKeyBlock(block []byte) bool {
	_, body, _ := bytes.Cut(block[len("-----BEGIN"):], []byte("-----"))
	body, _, _ = bytes.Cut(body, []byte("-----END"))
	return len(bytes.Join(bytes.Fields(body), nil)) >= 16 && entropy(body) >= 2
}
