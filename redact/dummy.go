package redact

import "bytes"

// dummyWords stand in what documentation shows in the place of a token.
var dummyWords = compile(`(?i)example|placeholder|your[_\-]|[_\-]here\b|insert[_\-]|replace[_\-]?me|redacted|changeme|access_?token|xxxx|\*\*\*\*|\.\.\.\.|dummy|goes[_\-]?here`)

// notDummy says whether a value that has a token's form may be one, and is not
// what documentation puts in its place. Long values have any short word in
// them at random.
func notDummy(value []byte) bool {
	return !isFiller(value) && (len(value) > 400 || !dummyWords.Match(value))
}

// isToken says whether a value that has a token's form may be one: behind the word
// that it begins with stands more than a dummy.
func isToken(value []byte) bool {
	rest := value
	if i := bytes.LastIndexAny(value[:min(len(value), 16)], "-_"); i >= 0 && len(value)-i > 16 {
		rest = value[i+1:]
	}
	return notDummy(value) && !isRepetitive(rest)
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
// another between, or two or three in turn: aaaa, 1111=, 123123.
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

// isCounted says whether a value is the alphabet or the digits in their order,
// plainly or in turn (abcdef123456, a1b2c3d4), for four fifths of it: what people
// type in the place of a token that they make up.
func isCounted(value []byte) bool {
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
	return most*5 >= len(value)*4
}

// shortestRun is the fewest characters in their order that are no chance.
const shortestRun = 5

// countedBytes returns how many of every step-th byte of a value stand in runs.
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

// isNext says whether one character follows another in the alphabet or in digits,
// or where one of both ends and the other begins.
func isNext(a, b byte) bool {
	switch {
	case a == 'z' || a == '9' || a == '0':
		return isDigit(b) && b <= '1' || b == 'a' || a == '0' && b == '1'
	case b == '1' || b == '0':
		return isLetter(a) || a == '9'
	}
	return isAlnum(a) && isAlnum(b) && b == a+1
}
