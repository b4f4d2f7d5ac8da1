package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"
)

const (
	// maxEncodings is how many encodings inside each other are undone, and
	// maxEscapes how many escapes.
	maxEncodings = 2
	maxEscapes   = 3
	// minEncoded is the shortest run of characters that is decoded, and
	// maxEncoded the most of one that is.
	minEncoded = 16
	maxEncoded = 1 << 20
	// minLine is the shortest line of encoded text that goes on in the next one
	// (RFC 2045 has 76, RFC 7468 has 64).
	minLine = 60
	// maxIndent is the most blanks that such a line begins with.
	maxIndent = 16
	// minIsland is the shortest readable text that is looked at within what
	// decodes to something else.
	minIsland = 12
	// maxReplaced is the longest run that is replaced as a whole where only a part
	// of what it encodes is found. A longer one is encoded anew.
	maxReplaced = 256
)

// depth is how many layers are still undone.
type depth struct{ encodings, escapes int }

var fullDepth = depth{maxEncodings, maxEscapes}

// finder finds in a text as it is.
type finder func(text []byte) []span

// findDeep finds in a text, and in what is encoded or escaped in it.
func findDeep(text []byte, d depth, find finder) []span {
	spans := find(text)
	for i := range spans {
		spans[i] = whole(text, spans[i])
	}
	if d.encodings > 0 {
		spans = append(spans, findEncoded(text, depth{d.encodings - 1, d.escapes}, find)...)
		spans = append(spans, findPercent(text, depth{d.encodings - 1, d.escapes}, find)...)
		spans = append(spans, findEntities(text, depth{d.encodings - 1, d.escapes}, find)...)
		spans = append(spans, findQuoted(text, depth{d.encodings - 1, d.escapes}, find)...)
	}
	if d.escapes > 0 {
		spans = append(spans, findEscaped(text, depth{d.encodings, d.escapes - 1}, find)...)
		spans = append(spans, findColoured(text, depth{d.encodings, d.escapes - 1}, find)...)
	}
	return spans
}

// findEncoded undoes base64 and hex, and looks into what comes out.
func findEncoded(text []byte, d depth, find finder) []span {
	var spans []span
	for start := 0; start < len(text); start++ {
		if !encodedBytes[text[start]] {
			continue
		}
		stop := endOfRun(text, start)
		if stop-start >= minEncoded {
			lines := endOfLines(text, start, stop)
			run := text[start:min(lines, start+maxEncoded)]
			places := []int(nil) // of the run's bytes, where it has line breaks in it
			if lines > stop {
				run, places = joinLines(run)
			}
			for _, s := range findInRun(run, d, find) {
				if places != nil {
					s.start, s.end = places[s.start], places[s.end-1]+1
				}
				s.start, s.end = s.start+start, s.end+start
				spans = append(spans, s)
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
		next++
		for indent := 0; indent < maxIndent && next < len(text) && text[next] == ' '; indent++ {
			next++
		}
		end := endOfRun(text, next)
		if end == next || end-next > size {
			return stop
		}
		stop = end
		if end-next < size {
			return stop
		}
	}
	return stop
}

// joinLines takes the line breaks out of a run, and returns where its bytes were.
func joinLines(run []byte) (joined []byte, places []int) {
	joined, places = make([]byte, 0, len(run)), make([]int, 0, len(run))
	for i, c := range run {
		if encodedBytes[c] {
			joined, places = append(joined, c), append(places, i)
		}
	}
	return joined, places
}

// encodedBytes are the characters of base64, base64url and hex.
var encodedBytes = func() (set [256]bool) {
	for _, c := range []byte(letters + "0123456789+/-_=") {
		set[c] = true
	}
	return set
}()

// findInRun looks at each part of a run that could be encoded by itself: what is
// between the characters that an alphabet lacks.
func findInRun(run []byte, d depth, find finder) []span {
	spans := findHex(run, d, find)
	standard := bytes.IndexByte(run, '+') >= 0 || bytes.IndexByte(run, '/') >= 0
	address := bytes.IndexByte(run, '-') >= 0 || bytes.IndexByte(run, '_') >= 0
	if standard || !address {
		spans = append(spans, findBase64(run, '+', '/', base64.RawStdEncoding, d, find)...)
	}
	if address {
		spans = append(spans, findBase64(run, '-', '_', base64.RawURLEncoding, d, find)...)
	}
	return spans
}

// findHex looks at stretches of hexadecimal digits. A digit that belongs to the
// text before them puts the pairs out of step, so both ways are tried.
func findHex(run []byte, d depth, find finder) []span {
	var spans []span
	for start := 0; start < len(run); start++ {
		stop := start
		for stop < len(run) && hexBytes[run[stop]] {
			stop++
		}
		for from := start; from < start+2 && stop-from >= minEncoded; from++ {
			plain := make([]byte, (stop-from)/2)
			if _, err := hex.Decode(plain, run[from:from+2*len(plain)]); err != nil {
				break
			}
			e := encoded{start: from, end: from + 2*len(plain), plain: plain, place: func(i int) (int, int) { return 2 * i, 2*i + 2 }, encode: hexAs(run[start:stop])}
			found, full := e.find(d, find)
			spans = append(spans, found...)
			if full {
				break
			}
		}
		start = max(start, stop)
	}
	return spans
}

var hexBytes = func() (set [256]bool) {
	for c := range 256 {
		set[c] = isHex(byte(c))
	}
	return set
}()

// hexAs writes hexadecimal digits in the case of a sample.
func hexAs(sample []byte) func([]byte) []byte {
	upper := bytes.ContainsAny(sample, "ABCDEF")
	return func(plain []byte) []byte {
		text := []byte(hex.EncodeToString(plain))
		if upper {
			text = bytes.ToUpper(text)
		}
		return text
	}
}

// findBase64 looks at stretches of one alphabet of base64. Characters that
// belong to the text before it put the groups of four out of step, so all four
// ways are tried, unless the first gives a text.
func findBase64(run []byte, plus, slash byte, encoding *base64.Encoding, d depth, find finder) []span {
	var spans []span
	for start := 0; start < len(run); start++ {
		stop := start
		for stop < len(run) && (isAlnum(run[stop]) || run[stop] == plus || run[stop] == slash) {
			stop++
		}
		shifts := [4]bool{}
		if stop-start >= minEncoded {
			shifts = readableShifts(run[start:stop])
			for shift := range shifts {
				shifts[shift] = shifts[shift] || isPacked(run[start+shift:stop])
			}
		}
		for shift, readable := range shifts {
			from := start + shift
			if !readable || stop-from < minEncoded {
				continue
			}
			size := stop - from
			if size%4 == 1 {
				size--
			}
			plain := make([]byte, encoding.DecodedLen(size))
			n, err := encoding.Decode(plain, run[from:from+size])
			if err != nil {
				break
			}
			e := encoded{start: from, end: from + size, plain: plain[:n], place: placeInBase64, encode: base64As(encoding, run, from+size)}
			found, full := e.find(d, find)
			spans = append(spans, found...)
			if full {
				break
			}
		}
		start = max(start, stop)
	}
	return spans
}

// isPacked says whether base64 begins as that of gzip or zlib does, or of text in
// UTF-16, every other byte of which is zero.
func isPacked(text []byte) bool {
	if len(text) < minEncoded {
		return false
	}
	switch text[0] {
	case 'H':
		return string(text[:4]) == "H4sI"
	case 'e':
		return text[1] == 'J' || text[1] == 'N' || text[1] == 'A'
	}
	zeros := 0
	for _, c := range text[:minEncoded] {
		if c == 'A' {
			zeros++
		}
	}
	return zeros >= 4
}

// readableShifts says which of the four ways to decode base64 give a readable
// stretch, without decoding it: three bytes begin in four characters.
func readableShifts(text []byte) (found [4]bool) {
	var lengths, controls [4]int
	for i := 0; i+1 < len(text); i++ {
		a, b := sextets[text[i]], sextets[text[i+1]]
		for k, c := range [3]byte{a<<2 | b>>4, a<<4 | b>>2, a<<6 | b} {
			shift := (i - k) & 3
			switch {
			case i < k:
			case readableBytes[c]:
				if lengths[shift]++; lengths[shift] == minIsland {
					found[shift] = true
				}
			default:
				lengths[shift] = 0
				if c < 0x80 {
					controls[shift]++
				}
			}
		}
	}
	found[0] = found[0] || controls[0] == 0 // perhaps a text in which not all is ASCII
	return found
}

// sextets are the values of the characters of both alphabets (RFC 4648).
var sextets = func() (values [256]byte) {
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		values[c] = byte(i)
	}
	values['-'], values['_'] = 62, 63
	return values
}()

var readableBytes = func() (set [256]bool) {
	for c := range 256 {
		set[c] = isPrintable(byte(c))
	}
	return set
}()

// placeInBase64 returns the characters that a decoded byte comes from.
func placeInBase64(i int) (start, end int) { return i * 8 / 6, (i*8 + 8 + 5) / 6 }

// base64As encodes with padding where the run that ends at stop had room for it.
func base64As(encoding *base64.Encoding, run []byte, stop int) func([]byte) []byte {
	padding := bytes.HasPrefix(run[stop:], []byte("="))
	return func(plain []byte) []byte {
		text := []byte(encoding.EncodeToString(plain))
		if padding { // its own = follow: the length has to leave the same room
			for len(text)%4 != stop%4 && len(plain) > 0 {
				plain = append(plain, ' ')
				text = []byte(encoding.EncodeToString(plain))
			}
		}
		return text
	}
}

// encoded is what a part of a run decodes to.
type encoded struct {
	start, end int // of the part, in the run
	plain      []byte
	place      func(i int) (start, end int) // of the characters of plain[i], from start on
	encode     func(plain []byte) []byte
}

// find looks into what was decoded: as a whole where it is text, and otherwise
// into the stretches of it that are. full says that it was text.
func (e encoded) find(d depth, find finder) (spans []span, full bool) {
	if isReadable(e.plain) {
		found := findDeep(e.plain, d, find)
		if len(found) == 0 {
			return nil, true
		}
		return []span{e.replaced(found)}, true
	}
	packed := inflated(e.plain)
	if packed == nil {
		packed = narrowed(e.plain)
	}
	if packed != nil { // it cannot be encoded anew without all the rest
		if found := findDeep(packed, d, find); len(found) > 0 {
			return []span{{start: e.start, end: e.end, kind: found[0].kind, joined: true}}, true
		}
		return nil, true
	}
	for start := 0; start < len(e.plain); start++ {
		stop := start
		for stop < len(e.plain) && isPrintable(e.plain[stop]) {
			stop++
		}
		if stop-start >= minIsland {
			for _, s := range findDeep(e.plain[start:stop], d, find) {
				from, _ := e.place(start + s.start)
				_, to := e.place(start + s.end - 1)
				spans = append(spans, span{start: e.start + from, end: min(e.start+to, e.end), kind: s.kind, joined: true})
			}
		}
		start = max(start, stop)
	}
	return spans, false
}

// replaced is the place of all that was decoded. A marker takes it where it is
// short, or where most of it was found; otherwise the rest is kept, encoded as
// it was, so that what reads it can still decode it.
func (e encoded) replaced(found []span) span {
	s := span{start: e.start, end: e.end, kind: found[0].kind, joined: true}
	covered := 0
	for _, f := range found {
		covered += f.end - f.start
	}
	if len(e.plain) > maxReplaced && covered*2 < len(e.plain) {
		s.rewrite = func(r *Redactor) ([]byte, map[string]int) {
			cleaned, counts := r.replaceAll(e.plain, found)
			return e.encode(cleaned), counts
		}
	}
	return s
}

func isPrintable(c byte) bool {
	return ' ' <= c && c < 0x7f || c == '\n' || c == '\r' || c == '\t'
}

// isReadable says whether b is text: what decoding something else gives is not.
// Its last character may be cut.
func isReadable(b []byte) bool {
	for rest := b; len(rest) > 0; {
		if c := rest[0]; c < utf8.RuneSelf {
			if !isPrintable(c) {
				return false
			}
			rest = rest[1:]
			continue
		}
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && (len(rest) >= utf8.UTFMax || len(b) < 4*utf8.UTFMax) {
			return false
		}
		rest = rest[size:]
	}
	return len(b) > 0
}
