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
	minEncoded = 20
	maxEncoded = 1 << 20
)

// findEncoded undoes base64, hex and URL encoding, and looks into what comes
// out. What is found there marks the whole run that it came from.
func findEncoded(text []byte, depth int) []span {
	if depth == 0 {
		return nil
	}
	var spans []span
	for start := 0; start < len(text); start++ {
		if !isEncodedByte(text[start]) {
			continue
		}
		stop := start
		for stop < len(text) && isEncodedByte(text[stop]) {
			stop++
		}
		if run := text[start:stop]; len(run) >= minEncoded {
			if kind, ok := insideOf(run[:min(len(run), maxEncoded)], depth); ok {
				spans = append(spans, span{start, stop, kind})
			}
		}
		start = stop
	}
	return spans
}

// isEncodedByte is true for the characters of base64, base64url, hex and URL encoding.
func isEncodedByte(c byte) bool {
	return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_' || c == '=' || c == '%' || c == '.' || c == '~'
}

// insideOf returns the kind of the first thing that a decoded run has inside.
func insideOf(run []byte, depth int) (kind string, ok bool) {
	for _, plain := range decodings(run) {
		if !isText(plain) || bytes.Equal(plain, run) {
			continue
		}
		found := append(findPlain(plain), findEncoded(plain, depth-1)...)
		if len(found) > 0 {
			return found[0].kind, true
		}
	}
	return "", false
}

// decodings returns what a run may stand for.
func decodings(run []byte) [][]byte {
	if bytes.IndexByte(run, '%') >= 0 {
		plain, err := url.QueryUnescape(string(run))
		if err != nil {
			return nil
		}
		return [][]byte{[]byte(plain)}
	}
	if isAllHex(run) {
		plain := make([]byte, len(run)/2)
		if _, err := hex.Decode(plain, run[:len(run)&^1]); err == nil {
			return [][]byte{plain}
		}
	}
	if bytes.IndexByte(run, '.') >= 0 || bytes.IndexByte(run, '~') >= 0 {
		return nil
	}
	trimmed := bytes.TrimRight(run, "=")
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(trimmed, "-_") {
		encoding = base64.RawURLEncoding
	}
	if len(trimmed)%4 == 1 {
		trimmed = trimmed[:len(trimmed)-1]
	}
	plain := make([]byte, encoding.DecodedLen(len(trimmed)))
	if n, err := encoding.Decode(plain, trimmed); err == nil {
		return [][]byte{plain[:n]}
	}
	return nil
}

func isAllHex(run []byte) bool {
	for _, c := range run {
		if !isHex(c) {
			return false
		}
	}
	return true
}

// isText says whether bytes are readable text: what decoding something else gives is not.
func isText(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError || (r < ' ' && r != '\n' && r != '\r' && r != '\t') || r == 0x7f {
			return false
		}
		b = b[size:]
	}
	return true
}
