package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"unicode/utf8"
)

const (
	// maxEncodings is how many encodings inside each other are undone.
	maxEncodings = 2
	// minEncoded is the shortest run of characters that is decoded, and
	// maxEncoded the most of one that is.
	minEncoded = 16
	maxEncoded = 1 << 20
	// minLine is the shortest line of encoded text that goes on in the next one
	// (RFC 2045 has 76, RFC 7468 has 64).
	minLine = 60
	// maxParts is at how many places of one run encoded text may begin.
	maxParts = 12
)

// findDeep finds in a text, and in what is encoded in it, as deep as depth.
func findDeep(text []byte, depth int, find func([]byte) []span) []span {
	spans := find(text)
	if depth == 0 {
		return spans
	}
	spans = append(spans, findEncoded(text, depth, find)...)
	return append(spans, findEscaped(text, depth, find)...)
}

// findEncoded undoes base64, hex and URL encoding, and looks into what comes
// out. What is found there marks the whole run that it came from.
func findEncoded(text []byte, depth int, find func([]byte) []span) []span {
	var spans []span
	for start := 0; start < len(text); start++ {
		if !encodedBytes[text[start]] {
			continue
		}
		stop := endOfRun(text, start)
		if stop-start >= minEncoded {
			lines := endOfLines(text, start, stop)
			run := text[start:min(lines, start+maxEncoded)]
			if lines > stop {
				run = bytes.Join(bytes.Fields(run), nil)
			}
			if kind, ok := insideOf(run, depth, find); ok {
				spans = append(spans, span{start, lines, kind})
			}
			stop = lines
		}
		start = stop
	}
	return spans
}

func endOfRun(text []byte, start int) int {
	stop := start
	for stop < len(text) && encodedBytes[text[stop]] {
		stop++
	}
	return stop
}

// endOfLines returns where a run ends that is broken into lines of one length.
func endOfLines(text []byte, start, stop int) int {
	size := stop - start
	for size >= minLine && stop < len(text) {
		next := stop
		if text[next] == '\r' {
			next++
		}
		if next >= len(text) || text[next] != '\n' {
			return stop
		}
		end := endOfRun(text, next+1)
		if end == next+1 || end-next-1 > size {
			return stop
		}
		stop = end
		if end-next-1 < size {
			return stop
		}
	}
	return stop
}

// encodedBytes are the characters of base64, base64url, hex and URL encoding.
var encodedBytes = func() (set [256]bool) {
	for _, c := range []byte(letters + "0123456789+/-_=%.~") {
		set[c] = true
	}
	return set
}()

// insideOf returns the kind of the first thing that a decoded run has inside.
func insideOf(run []byte, depth int, find func([]byte) []span) (kind string, ok bool) {
	for _, plain := range decodings(run) {
		if len(plain) == 0 || bytes.Equal(plain, run) {
			continue
		}
		if found := findDeep(plain, depth-1, find); len(found) > 0 {
			return found[0].kind, true
		}
	}
	return "", false
}

// decodings returns the readable texts that a run may stand for.
func decodings(run []byte) [][]byte {
	if bytes.IndexByte(run, '%') >= 0 {
		plain, err := url.QueryUnescape(string(run))
		if err != nil {
			return nil
		}
		list := readable([]byte(plain))
		if plain, err := url.PathUnescape(string(run)); err == nil && bytes.IndexByte(run, '+') >= 0 {
			list = append(list, readable([]byte(plain))...) // in a path + is itself
		}
		return list
	}
	if list := readable(fromHex(run)); list != nil {
		return list
	}
	if list := readable(fromBase64(run)); list != nil && bytes.IndexByte(bytes.TrimRight(run, "="), '=') < 0 {
		return list
	}
	return partsOf(run)
}

// partsOf decodes hex and base64 behind what stands before it in one run: name=value,
// a path, a word with a hyphen.
func partsOf(run []byte) [][]byte {
	var list [][]byte
	left := maxParts
	for i := 1; i+minEncoded <= len(run) && i <= maxName && left > 0; i++ {
		if c := run[i-1]; c == '=' || c == '/' || c == '-' || c == '_' || c == '.' || c == '~' || c == '+' {
			left--
			list = append(list, readable(fromHex(run[i:]))...)
			list = append(list, readable(fromBase64(run[i:]))...)
		}
	}
	return list
}

// fromBase64 decodes a run in either alphabet, up to the first character that
// is of neither. It returns nothing where there is no base64.
func fromBase64(run []byte) []byte {
	if i := bytes.IndexAny(run, "=.~"); i >= 0 {
		run = run[:i]
	}
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(run, "-_") {
		encoding = base64.RawURLEncoding
	}
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	plain := make([]byte, encoding.DecodedLen(len(run)))
	n, err := encoding.Decode(plain, run)
	if err != nil {
		return nil
	}
	return plain[:n]
}

// fromHex decodes a run of hexadecimal digits, with or without 0x. It returns
// nothing for anything else.
func fromHex(run []byte) []byte {
	run = bytes.TrimPrefix(bytes.TrimPrefix(run, []byte("0x")), []byte("0X"))
	if !isAllHex(run) {
		return nil
	}
	plain := make([]byte, len(run)/2)
	if _, err := hex.Decode(plain, run[:len(run)&^1]); err != nil {
		return nil
	}
	return plain
}

func isAllHex(run []byte) bool {
	for _, c := range run {
		if !isHex(c) {
			return false
		}
	}
	return true
}

// readable returns b if it is text: what decoding something else gives is not.
// Its last character may be cut.
func readable(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	for rest := b; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && (len(rest) >= utf8.UTFMax || len(b) < 4*utf8.UTFMax) || (r < ' ' && r != '\n' && r != '\r' && r != '\t') || r == 0x7f {
			return nil
		}
		rest = rest[size:]
	}
	return [][]byte{b}
}
