package risk

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
	"io"
	"mime/quotedprintable"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// minEncoded is the length of the shortest text that is decoded: fewer characters have no effects.
const minEncoded = 8

// decodings calls each with what a text can be an encoding of: percent encoding, entities of HTML, escapes with a
// backslash, base64, hexadecimal digits, and quoted texts inside of it.
func decodings(text string, each func(string)) {
	if len(text) < minEncoded {
		return
	}
	if strings.ContainsAny(text, "%+") {
		each(percentDecoded(text))
	}
	if strings.Contains(text, "=") {
		parameters(text, each)
		if decoded, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(text))); err == nil {
			each(string(decoded))
		}
	}
	if strings.Contains(text, "<") && strings.Contains(text, ">") {
		// Two tags in a row are the end of one text and the start of another.
		each(markup.ReplaceAllString(strings.ReplaceAll(text, "><", ">\n<"), " "))
	}
	if strings.ContainsAny(text, `'"`) {
		if whole := literals.ReplaceAllString(text, ""); whole != text {
			quoted(whole, each)
		}
	}
	if r := numbers(text); r != "" {
		each(r)
	}
	for _, token := range tokens.FindAllString(text, -1) {
		token, _, _ = strings.Cut(token, "=")
		for _, raw := range [][]byte{fromBase64(token), fromBase32(token), fromHex(token)} {
			if decoded, ok := asText(raw); ok {
				each(decoded)
			}
		}
	}
	if strings.Contains(text, "&") && strings.Contains(text, ";") {
		each(html.UnescapeString(text))
	}
	if strings.Contains(text, `\`) {
		each(unescaped(text))
	}
	compact := withoutSpace(text)
	for _, raw := range [][]byte{fromBase64(compact), fromBase32(compact), fromHex(digits.Replace(compact))} {
		if decoded, ok := asText(raw); ok {
			each(decoded)
		}
	}
	// quoted text in SQL that only reads is data
	if strings.ContainsAny(text, "'\"`") && sqltext.Judge(text).Effect != sqltext.Read {
		quoted(text, each)
	}
}

// markup are the tags around text in XML and HTML. literals is what is between the parts of a text in
// quotes that a program joins. tokens may be encoded text in other text.
var (
	markup   = lazyregexp.New(`<!\[CDATA\[|\]\]>|<[/!?]?[A-Za-z][^<>]{0,200}>`)
	literals = lazyregexp.New(`'\s*(?:\|\||\+|,|\.|&)?\s*'|"\s*(?:\|\||\+|,|\.|&)?\s*"`)
	tokens   = lazyregexp.New(`[A-Za-z0-9+/_-]{16,}={0,6}`)
	digits   = strings.NewReplacer(":", "", ",", "")
)

// folded returns a text in one form of its characters, with the given character, or none, for those that nobody sees,
// and with spaces for other controls: databases read a vertical tab as a space.
func folded(text string, unseen rune) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || visible.Is(r):
			return r
		case r < ' ' || visible.IsBlank(r) || unicode.IsSpace(r):
			return ' '
		case 0xE0020 <= r && r < 0xE007F: // tags, which are the characters of ASCII
			return r - 0xE0000
		}
		return unseen
	}, norm.NFKC.String(text))
}

// parameters calls each with the values of a form or of the query of a URL.
func parameters(text string, each func(string)) {
	if strings.ContainsAny(text, " \t\n") {
		return
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("?&;#", r) }) {
		if _, value, ok := strings.Cut(part, "="); ok && len(value) >= minEncoded {
			each(percentDecoded(value))
		}
	}
}

// numbers returns the characters that a text has as decimal numbers or as groups of eight bits, or an
// empty text.
func numbers(text string) string {
	var b strings.Builder
	isBetween := func(r rune) bool { return strings.ContainsRune(" ,;[]()\n\t", r) }
	for field := range strings.FieldsFuncSeq(text, isBetween) {
		base := 10
		if len(field) == 8 && strings.Trim(field, "01") == "" {
			base = 2
		}
		n, err := strconv.ParseUint(field, base, 32)
		if err != nil || n > unicode.MaxRune {
			return ""
		}
		b.WriteRune(rune(n))
	}
	return b.String()
}

// fromBase32 decodes base32, with and without padding; nil for other texts.
func fromBase32(text string) []byte {
	text = strings.TrimRight(text, "=")
	if len(text) < minEncoded {
		return nil
	}
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(text))
	if err != nil {
		return nil
	}
	return raw
}

// nested decodes a text that is JSON of a list, an object or a string.
func nested(text string) (any, bool) {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) < minEncoded || !strings.ContainsRune(`[{"`, rune(trimmed[0])) {
		return nil, false
	}
	value, err := strictjson.Value([]byte(trimmed))
	return value, err == nil
}

// percentDecoded decodes %XX, and a plus sign as a space, as URLs and forms have them.
func percentDecoded(text string) string {
	var b strings.Builder
	plus := !strings.ContainsAny(text, " \t\n")
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '+' && plus:
			b.WriteByte(' ')
			continue
		case text[i] == '%' && i+5 < len(text) && text[i+1] == 'u':
			if n, err := strconv.ParseUint(text[i+2:i+6], 16, 32); err == nil {
				b.WriteRune(rune(n))
				i += 5
				continue
			}
		case text[i] == '%' && i+2 < len(text):
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return strings.ToValidUTF8(b.String(), " ")
}

// unescaped decodes the escapes that string literals have: \n, \x41, \u0041.
func unescaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case 'n', 'r':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '0', '1', '2', '3':
			end := min(i+3, len(text))
			if n, err := strconv.ParseUint(text[i:end], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i = end - 1
				continue
			}
			b.WriteByte(text[i])
		case 'x', 'u', 'U':
			if code, _, ok := strings.Cut(text[i+1:min(i+10, len(text))], "}"); ok && strings.HasPrefix(code, "{") {
				if n, err := strconv.ParseUint(code[1:], 16, 32); err == nil && n <= unicode.MaxRune {
					b.WriteRune(rune(n))
					i += len(code) + 1
					continue
				}
			}
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
			end := min(i+1+digits, len(text))
			if n, err := strconv.ParseUint(text[i+1:end], 16, 32); err == nil && n <= unicode.MaxRune {
				b.WriteRune(rune(n))
				i = end - 1
				continue
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(text[i])
		}
	}
	return strings.ToValidUTF8(b.String(), " ")
}

func withoutSpace(text string) string {
	if !strings.ContainsAny(text, " \t\r\n") {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// fromBase64 decodes both alphabets, with and without padding, and data URLs; nil for other texts.
func fromBase64(text string) []byte {
	if head, data, ok := strings.Cut(text, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		text = data
	}
	text = strings.TrimRight(text, "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	if len(text) < minEncoded {
		return nil
	}
	raw, err := encoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// fromHex decodes hexadecimal digits, also those of a literal (0x41, x'41'); nil for other texts.
func fromHex(text string) []byte {
	text = strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(text), "0"), "x")
	raw, err := hex.DecodeString(strings.Trim(text, "'"))
	if err != nil {
		return nil
	}
	return raw
}

// maxInflated bounds what is decompressed.
const maxInflated = 1 << 20

// asText returns bytes as a text: UTF-8, UTF-16, or one of these compressed.
func asText(raw []byte) (string, bool) {
	if len(raw) < 4 {
		return "", false
	}
	var inflated io.Reader
	var err error
	switch {
	case raw[0] == 0x1f && raw[1] == 0x8b:
		inflated, err = gzip.NewReader(bytes.NewReader(raw))
	case raw[0] == 0x78 && (int(raw[0])<<8|int(raw[1]))%31 == 0:
		inflated, err = zlib.NewReader(bytes.NewReader(raw))
	}
	if inflated != nil && err == nil {
		// Truncated or damaged data is decoded as far as possible.
		raw, _ = io.ReadAll(io.LimitReader(inflated, maxInflated))
	}
	if utf8.Valid(raw) && bytes.IndexByte(raw, 0) < 0 {
		return string(raw), true
	}
	return fromUTF16(raw)
}

// fromUTF16 decodes text that is mostly ASCII: each other byte is zero.
func fromUTF16(raw []byte) (string, bool) {
	if len(raw)%2 != 0 {
		return "", false
	}
	for high := range 2 { // which byte of each pair is the high one
		units := make([]uint16, 0, len(raw)/2)
		zeros := 0
		for i := 0; i < len(raw); i += 2 {
			units = append(units, uint16(raw[i+high])<<8|uint16(raw[i+1-high]))
			if raw[i+high] == 0 {
				zeros++
			}
		}
		if zeros*2 > len(units) {
			return string(utf16.Decode(units)), true
		}
	}
	return "", false
}

// quoted calls each with the texts between quotes that have a space: a statement in a command or a program.
func quoted(text string, each func(string)) {
	for _, quote := range []byte("'\"`") {
		rest := text
		for {
			begin := strings.IndexByte(rest, quote)
			if begin < 0 {
				break
			}
			rest = rest[begin+1:]
			end := strings.IndexByte(rest, quote)
			if end < 0 {
				break
			}
			if inner := rest[:end]; len(inner) >= minEncoded && strings.ContainsAny(inner, " \t\n") {
				each(inner)
			}
			rest = rest[end:] // the closing quote can be the opening one of the next
		}
	}
}

// character returns the character with a number, in decimal digits.
func character(number string) (rune, bool) {
	n, err := strconv.ParseUint(number, 10, 21)
	if err != nil || n > unicode.MaxRune || n < ' ' && n != '\n' && n != '\t' && n != '\r' {
		return 0, false
	}
	return rune(n), true
}
