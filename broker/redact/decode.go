package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
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
)

// findEncoded undoes base64, hex, URL encoding and the escapes of JSON and
// JavaScript, and looks into what comes out. What is found there marks the
// whole run that it came from.
func findEncoded(text []byte, depth int, find func([]byte) []span) []span {
	if depth == 0 {
		return nil
	}
	var spans []span
	for start := 0; start < len(text); start++ {
		if !isEncodedByte(text, start) {
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
	for stop < len(text) && isEncodedByte(text, stop) {
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

// isEncodedByte is true for the characters of base64, base64url, hex and URL
// encoding, and for a backslash that begins an escape of one character.
func isEncodedByte(text []byte, at int) bool {
	c := text[at]
	if encodedBytes[c] {
		return true
	}
	return c == '\\' && at+1 < len(text) && (text[at+1] == 'u' || text[at+1] == 'x' || text[at+1] == '/')
}

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
		found := find(plain)
		if len(found) == 0 {
			found = findEncoded(plain, depth-1, find)
		}
		if len(found) > 0 {
			return found[0].kind, true
		}
	}
	return "", false
}

// decodings returns the readable texts that a run may stand for.
func decodings(run []byte) [][]byte {
	if bytes.IndexByte(run, '\\') >= 0 {
		return readable(unescaped(run))
	}
	if bytes.IndexByte(run, '%') >= 0 {
		plain, err := url.PathUnescape(string(run))
		if err != nil {
			return nil
		}
		return readable([]byte(plain))
	}
	digits := bytes.TrimPrefix(bytes.TrimPrefix(run, []byte("0x")), []byte("0X"))
	if isAllHex(digits) {
		plain := make([]byte, len(digits)/2)
		if _, err := hex.Decode(plain, digits[:len(digits)&^1]); err == nil {
			if found := readable(plain); found != nil {
				return found
			}
		}
	}
	if plain := readable(fromBase64(run)); plain != nil {
		return plain
	}
	return partsOf(run)
}

// partsOf decodes base64 behind what stands before it in one run: name=value,
// a path, a word with a hyphen.
func partsOf(run []byte) [][]byte {
	var list [][]byte
	for i := 1; i+minEncoded <= len(run) && i <= maxName; i++ {
		if c := run[i-1]; c == '=' || c == '/' || c == '-' || c == '_' || c == '.' || c == '~' {
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

// unescaped undoes \u0041, \x41 and \/.
func unescaped(run []byte) []byte {
	plain := make([]byte, 0, len(run))
	for i := 0; i < len(run); i++ {
		size := 0
		if run[i] == '\\' && i+1 < len(run) {
			size = map[byte]int{'u': 4, 'x': 2}[run[i+1]]
			if run[i+1] == '/' {
				continue
			}
		}
		if size == 0 || i+2+size > len(run) {
			plain = append(plain, run[i])
			continue
		}
		code, err := strconv.ParseUint(string(run[i+2:i+2+size]), 16, 32)
		if err != nil {
			plain = append(plain, run[i])
			continue
		}
		plain = utf8.AppendRune(plain, rune(code))
		i += 1 + size
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
func readable(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	for rest := b; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && len(rest) >= utf8.UTFMax || (r < ' ' && r != '\n' && r != '\r' && r != '\t') || r == 0x7f {
			return nil
		}
		rest = rest[size:]
	}
	return [][]byte{b}
}
