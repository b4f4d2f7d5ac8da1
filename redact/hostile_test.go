package redact_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/airlock-mcp/airlock/redact"
)

// encodings are the encodings that code can apply to a value without the intention to hide it.
var encodings = map[string]func(string) string{
	"as it is":             func(s string) string { return s },
	"base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, two bytes in": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x:" + s)) },
	"base64, three bytes in": func(s string) string {
		return base64.StdEncoding.EncodeToString(
			[]byte("x: " + s))
	},
	"base64 for addresses": func(s string) string {
		return base64.RawURLEncoding.EncodeToString(
			[]byte("a b c ?>" + s))
	},
	"base64 behind a name": func(s string) string {
		return "auth=" +
			base64.StdEncoding.EncodeToString([]byte(s))
	},
	"base64 behind a path": func(s string) string {
		return "/v1/x-" +
			base64.StdEncoding.EncodeToString([]byte(s))
	},
	"base64 in a data address": func(s string) string {
		return "data:;base64," +
			base64.StdEncoding.EncodeToString([]byte(s))
	},
	"base64 in lines":             inLines,
	"hex":                         func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper-case hex":              func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex behind 0x":               func(s string) string { return "0x" + hex.EncodeToString([]byte(s)) },
	"URL encoding":                func(s string) string { return url.QueryEscape("a b " + s) },
	"URL encoding of every byte":  func(s string) string { return everyByte(s, "%%%02X") },
	"lower-case URL encoding":     func(s string) string { return everyByte(s, "%%%02x") },
	"JSON escapes all the way":    func(s string) string { return everyRune(s) },
	"a JSON escape in the middle": oneEscape,
	"hexadecimal escapes":         func(s string) string { return everyByte(s, `\x%02x`) },
	"base64 of UTF-16": func(s string) string {
		return base64.StdEncoding.EncodeToString(wide("\ufeffkey: "+s, binary.LittleEndian))
	},
	"base64 of UTF-16, reversed": func(s string) string {
		return base64.StdEncoding.EncodeToString(wide("key: "+s, binary.BigEndian))
	},
	"base64 of gzip": func(s string) string {
		return base64.StdEncoding.EncodeToString(packed(
			s, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }))
	},
	"base64 of zlib": func(s string) string {
		return base64.StdEncoding.EncodeToString(packed(
			s, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }))
	},
	"hex of gzip": func(s string) string {
		return hex.EncodeToString(packed(s, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }))
	},
	"quoted-printable": quotedPrintable,
}

// oneEscape writes one character as a JSON escape: the second one, or a backslash before it, which
// would otherwise escape the escape.
func oneEscape(s string) string {
	at := 1
	if s[0] == '\\' {
		at = 0
	}
	return s[:at] + fmt.Sprintf(`\u%04x`, s[at]) + s[at+1:]
}

func packed(s string, open func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := open(&b)
	io.WriteString(w, "before "+s+" behind")
	w.Close()
	return b.Bytes()
}

func wide(s string, order binary.AppendByteOrder) []byte {
	var b []byte
	for _, code := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, code)
	}
	return b
}

// quotedPrintable encodes text in which a soft line break splits the value.
func quotedPrintable(s string) string {
	var b bytes.Buffer
	w := quotedprintable.NewWriter(&b)
	io.WriteString(w, strings.Repeat("some text=before ", 4)+s+strings.Repeat(" and after it", 9))
	w.Close()
	return b.String()
}

func everyByte(s, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func everyRune(s string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

// inLines returns base64 in lines as in mail (RFC 2045), with the value across the end of a line.
func inLines(s string) string {
	text := base64.StdEncoding.EncodeToString([]byte(
		strings.Repeat("some text before ", 3) + s + strings.Repeat(" and after it", 9)))
	var lines []string
	for ; len(text) > 76; text = text[76:] {
		lines = append(lines, text[:76])
	}
	return strings.Join(append(lines, text), "\r\n")
}

// Tokens are found in every encoding within every other. Each pair is tested with one kind of
// token, and the kinds take turns.
func TestTokensAreFoundInEncodings(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	pair := 0
	for _, name := range slices.Sorted(maps.Keys(encodings)) {
		for _, outerName := range slices.Sorted(maps.Keys(encodings)) {
			format := formats[pair%len(formats)]
			pair++
			text := encodings[outerName](encodings[name](sample(rng, format.parts)))
			if _, found := redact.New().Bytes([]byte("log: " + text + "\n")); len(found) == 0 {
				t.Errorf("%s in %s in %s is not found: %s", format.kind, name, outerName, text)
			}
		}
	}
}

// Held credentials are removed in every encoding, and in two encodings at once.
func TestHeldCredentialsInEncodings(t *testing.T) {
	for _, secret := range []string{"s3cr3t/Value+with=signs", "plainlowercase", "with space & <tags> 100%",
		"pa$$w(o)rd!*'~", "schlüssel-für-ünïcödé", `quote"and\slash`} {
		r := redact.New()
		r.Hold(secret)
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		forms := map[string]string{"as JSON": string(quoted), "as JSON in JSON": fmt.Sprintf("%q", quoted),
			"escaped for a path": url.PathEscape(secret)}
		for name, encode := range encodings {
			forms[name] = encode(secret)
		}
		for name, form := range forms {
			for which, clean := range map[string]func([]byte) ([]byte, []redact.Finding){"Held": r.Held,
				"Bytes": r.Bytes} {
				if _, found := clean([]byte("text: " + form + "\n")); redact.Counts(found)["held-credential"] == 0 {
					t.Errorf("%s lets %q through %s: %s", which, secret, name, form)
				}
			}
		}
		named := map[string]string{"dir/" + secret + ".txt": "a file's name",
			fmt.Sprintf(`{%s: 1}`, quoted): "a member's name"}
		for text, what := range named {
			if got, _ := r.Bytes([]byte(text)); !bytes.Contains(got, []byte("[redacted:held-credential]")) {
				t.Errorf("%q stands in %s: got %s", secret, what, got)
			}
		}
	}
}

// A held credential is removed whatever surrounds it.
func FuzzHeldNeverLeaves(f *testing.F) {
	const secret = "h3ld-Credential/of+ours"
	f.Add([]byte("before "), []byte(" after"))
	f.Add([]byte("password=\""), []byte("\" -----BEGIN PRIVATE KEY-----"))
	f.Add([]byte("%41%"), []byte("%zz\\u00"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		r := redact.New()
		r.Hold(secret)
		text := bytes.Join([][]byte{before, []byte(secret), after,
			[]byte(base64.StdEncoding.EncodeToString([]byte(secret))), before}, nil)
		whole, _ := r.Bytes(text)
		held, _ := r.Held(text)
		for how, got := range map[string][]byte{"Bytes": whole, "Held": held} {
			if bytes.Contains(got, []byte(secret)) ||
				bytes.Contains(got, []byte(base64.RawStdEncoding.EncodeToString([]byte(secret))[:28])) {
				t.Errorf("%s let the credential out of %q", how, text)
			}
		}
	})
}
