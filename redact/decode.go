package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"
)

const (
	// minEncoded is the length of the shortest run of characters that is decoded at every alignment,
	// and minShort that of the shortest that is decoded as a whole.
	minEncoded = 16
	minShort   = 8
	// maxEncoded is the maximum length of one run that is decoded.
	maxEncoded = 1 << 20
	// minHex is the length of the shortest run of hexadecimal digits that is decoded.
	minHex = 12
	// minLine is the length of the shortest line of encoded text that may continue in the next line,
	// and minWideLine that of the shortest that is assumed to (RFC 2045 has 76, RFC 7468 has 64).
	minLine     = 20
	minWideLine = 60
	// maxIndent is the maximum number of spaces before such a line.
	maxIndent = 16
	// minIsland is the length of the shortest readable text that is searched within binary data: that of a social
	// security number.
	minIsland = len("123-45-6789")
	// maxReplaced is the length of the longest run that is replaced as a whole if only a part of its
	// decoded text is found. A longer one is encoded again.
	maxReplaced = 256
)

// encoded decodes base64, base32 and hex, and searches the decoded bytes.
func (s *search) encoded(text []byte, d depth) []span {
	var spans []span
	joinedTo := 0
	for start := 0; start < len(text) && !s.work.exhausted(); start++ {
		if !encodedBytes[text[start]] {
			continue
		}
		stop := endOfRun(text, start)
		if stop-start < minShort {
			start = stop
			continue
		}
		lines := stop
		if start >= joinedTo {
			lines = endOfLines(text, start, stop)
		}
		if lines == stop || stop-start < minWideLine { // each line may be encoded by itself
			run := text[start:min(stop, start+maxEncoded)]
			spans = append(spans, moved(s.run(run, d), start)...)
		}
		if lines > stop {
			run, places := joinLines(text[start:min(lines, start+maxEncoded)])
			for _, found := range s.run(run, d) {
				found.start, found.end = start+places[found.start], start+places[found.end-1]+1
				spans = append(spans, found)
			}
			joinedTo = lines
			if stop-start >= minWideLine {
				stop = lines
			}
		}
		start = stop
	}
	return spans
}

// moved adds an offset to the positions of spans.
func moved(spans []span, offset int) []span {
	for i := range spans {
		spans[i].start, spans[i].end = spans[i].start+offset, spans[i].end+offset
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

// endOfLines returns the end of a run that is broken into lines of one length.
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

// joinLines removes the line breaks from a run, and returns the original positions of its bytes.
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

// run searches each part of a run that may be encoded separately. Characters outside an alphabet
// separate the parts.
func (s *search) run(run []byte, d depth) []span {
	spans := s.hex(run, d)
	standard := bytes.IndexByte(run, '+') >= 0 || bytes.IndexByte(run, '/') >= 0
	address := bytes.IndexByte(run, '-') >= 0 || bytes.IndexByte(run, '_') >= 0
	if standard || !address {
		spans = append(spans, s.base64(run, '+', '/', base64.RawStdEncoding, d)...)
	}
	if address {
		spans = append(spans, s.base64(run, '-', '_', base64.RawURLEncoding, d)...)
	}
	return append(spans, s.base32(run, d)...)
}

// base32 decodes runs of base32 (RFC 4648, section 6) in one case. Letters of the other case end a run.
func (s *search) base32(run []byte, d depth) []span {
	var spans []span
	for start := 0; start < len(run); start++ {
		stop := endOfCase(run, start)
		if stop-start >= minEncoded {
			digits := bytes.ToUpper(run[start:stop])
			for len(digits)%8 == 1 || len(digits)%8 == 3 || len(digits)%8 == 6 {
				digits = digits[:len(digits)-1]
			}
			plain := make([]byte, base32Encoding.DecodedLen(len(digits)))
			if n, err := base32Encoding.Decode(plain, digits); err == nil && isReadable(plain[:n]) {
				e := encoded{start: start, end: stop, plain: plain[:n],
					place: func(i int) (int, int) { return i * 8 / 5, (i*8 + 8 + 4) / 5 }}
				found, _ := s.inside(e, d)
				spans = append(spans, found...)
			}
		}
		start = max(start, stop-1)
	}
	return spans
}

// endOfCase returns the end of the characters of base32 that begin at start and whose letters have one case.
func endOfCase(run []byte, start int) int {
	stop, upper, lower := start, false, false
	for ; stop < len(run) && base32Bytes[run[stop]]; stop++ {
		upper, lower = upper || isUpper(run[stop]), lower || isLetter(run[stop]) && !isUpper(run[stop])
		if upper && lower {
			break
		}
	}
	return stop
}

var base32Encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

var base32Bytes = func() (set [256]bool) {
	for _, c := range []byte(letters + "234567") {
		set[c] = true
	}
	return set
}()

// hex decodes runs of hexadecimal digits. A preceding digit that belongs to other text misaligns
// the pairs, so both alignments are tried.
func (s *search) hex(run []byte, d depth) []span {
	var spans []span
	for start := 0; start < len(run); start++ {
		stop := start
		for stop < len(run) && hexBytes[run[stop]] {
			stop++
		}
		for from := start; from < start+2 && stop-from >= minHex; from++ {
			plain := make([]byte, (stop-from)/2)
			if _, err := hex.Decode(plain, run[from:from+2*len(plain)]); err != nil {
				break
			}
			if stop-from < minEncoded && !isReadable(plain) {
				continue
			}
			e := encoded{start: from, end: from + 2*len(plain), plain: plain,
				place: func(i int) (int, int) { return 2 * i, 2*i + 2 }, encode: hexAs(run[start:stop])}
			found, full := s.inside(e, d)
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

// hexAs returns an encoder that writes hexadecimal digits in the case of sample.
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

// base64 decodes runs of one alphabet of base64. Preceding characters that belong to other text
// misalign the groups of four, so all four alignments are tried, unless the first gives readable
// text.
func (s *search) base64(run []byte, plus, slash byte, encoding *base64.Encoding, d depth) []span {
	var spans []span
	for start := 0; start < len(run); start++ {
		stop := start
		for stop < len(run) && (isAlnum(run[stop]) || run[stop] == plus || run[stop] == slash) {
			stop++
		}
		shifts := [4]bool{}
		switch {
		case stop-start >= minEncoded:
			shifts = readableShifts(run[start:stop])
			for shift := range shifts {
				shifts[shift] = shifts[shift] || isPacked(run[start+shift:stop])
			}
		case stop-start >= minShort:
			shifts[0] = isShortText(run[start:stop])
		}
		for shift, readable := range shifts {
			from := start + shift
			if !readable {
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
			e := encoded{start: from, end: from + size, plain: plain[:n], place: placeInBase64,
				encode: base64As(encoding, run, from+size)}
			found, full := s.inside(e, d)
			spans = append(spans, found...)
			if full {
				break
			}
		}
		start = max(start, stop)
	}
	return spans
}

// isShortText reports whether a short run is base64 of printable ASCII. Most words are not.
func isShortText(run []byte) bool {
	if len(run)%4 == 1 {
		return false
	}
	for i := 0; i+1 < len(run); i++ {
		if i%4 == 3 {
			continue
		}
		a, b := sextets[run[i]], sextets[run[i+1]]
		if c := [3]byte{a<<2 | b>>4, a<<4 | b>>2, a<<6 | b}[i%4]; !isPrintable(c) {
			return false
		}
	}
	return true
}

// isPacked reports whether base64 begins like that of gzip or zlib, or of text in UTF-16, in which
// every other byte is zero.
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

// readableShifts reports which of the four alignments of base64 give a readable part, without
// decoding all of it. Four characters encode three bytes.
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
	found[0] = found[0] || controls[0] == 0 // may be text that is not only ASCII
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

// base64As returns an encoder that adds padding if the run that ends at stop had padding.
func base64As(encoding *base64.Encoding, run []byte, stop int) func([]byte) []byte {
	padding := bytes.HasPrefix(run[stop:], []byte("="))
	return func(plain []byte) []byte {
		text := []byte(encoding.EncodeToString(plain))
		if padding { // the original = follow, so the length modulo 4 must not change
			for len(text)%4 != stop%4 && len(plain) > 0 {
				plain = append(plain, ' ')
				text = []byte(encoding.EncodeToString(plain))
			}
		}
		return text
	}
}

// encoded is a part of a text with the bytes that it decodes to.
type encoded struct {
	start, end int
	plain      []byte
	place      func(i int) (start, end int) // of the characters of plain[i], relative to start
	encode     func(plain []byte) []byte    // nil if only the found parts are replaced
}

// inside searches the decoded bytes. If they are not text as a whole, it searches the readable
// parts. full reports whether they are text.
func (s *search) inside(e encoded, d depth) (spans []span, full bool) {
	if isReadable(e.plain) {
		found := s.deep(e.plain, d)
		if len(found) == 0 {
			return nil, true
		}
		if e.encode == nil {
			return e.mapped(found, 0), true
		}
		return []span{e.replaced(found)}, true
	}
	packed := inflated(e.plain)
	if packed == nil {
		packed = narrowed(e.plain)
	}
	s.work.spend(len(packed) / 2)
	if packed != nil { // compressed data or UTF-16, which is not encoded again
		if found := s.deep(packed, d); len(found) > 0 {
			return []span{{start: e.start, end: e.end, kind: kindOf(found), joined: true}}, true
		}
		return nil, true
	}
	for start := 0; start < len(e.plain); start++ {
		stop := start
		for stop < len(e.plain) && isPrintable(e.plain[stop]) {
			stop++
		}
		if stop-start >= minIsland {
			spans = append(spans, e.mapped(s.deep(e.plain[start:stop], d), start)...)
		}
		start = max(start, stop)
	}
	return spans, false
}

// kindOf returns the kind of a span that replaces all found ones.
func kindOf(found []span) string {
	for _, f := range found {
		if f.kind == kindHeld {
			return kindHeld
		}
	}
	return found[0].kind
}

// mapped returns the original positions of spans in plain[offset:].
func (e encoded) mapped(found []span, offset int) []span {
	spans := make([]span, len(found))
	for i, f := range found {
		from, _ := e.place(offset + f.start)
		_, to := e.place(offset + f.end - 1)
		spans[i] = span{start: e.start + from, end: min(e.start+to, e.end), kind: f.kind, joined: true}
	}
	return spans
}

// replaced returns one span for everything that was decoded. If it is short or if at least half of
// it was found, a marker replaces it. Otherwise the remaining text is encoded again with the
// markers, so that its readers can still decode it.
func (e encoded) replaced(found []span) span {
	s := span{start: e.start, end: e.end, kind: kindOf(found), joined: true}
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

// isReadable reports whether b is text. The result of decoding arbitrary data is usually not. The
// last character of b may be incomplete.
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
