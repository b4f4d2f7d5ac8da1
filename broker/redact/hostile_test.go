package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/broker/redact"
)

// encodings are what code can put around a value without meaning to hide it.
var encodings = map[string]func(string) string{
	"as it is":                    func(s string) string { return s },
	"base64":                      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, two bytes in":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x:" + s)) },
	"base64, three bytes in":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x: " + s)) },
	"base64 for addresses":        func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("a b c ?>" + s)) },
	"base64 behind a name":        func(s string) string { return "auth=" + base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 behind a path":        func(s string) string { return "/v1/x-" + base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 in a data address":    func(s string) string { return "data:;base64," + base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 in lines":             inLines,
	"hex":                         func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper-case hex":              func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex behind 0x":               func(s string) string { return "0x" + hex.EncodeToString([]byte(s)) },
	"URL encoding":                func(s string) string { return url.QueryEscape("a b " + s) },
	"URL encoding of every byte":  func(s string) string { return everyByte(s, "%%%02X") },
	"lower-case URL encoding":     func(s string) string { return everyByte(s, "%%%02x") },
	"JSON escapes all the way":    func(s string) string { return everyRune(s) },
	"a JSON escape in the middle": func(s string) string { return s[:1] + fmt.Sprintf(`\u%04x`, s[1]) + s[2:] },
	"hexadecimal escapes":         func(s string) string { return everyByte(s, `\x%02x`) },
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

// inLines is base64 as mail has it (RFC 2045), with the value across the end of a line.
func inLines(s string) string {
	text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("some text before ", 3) + s + strings.Repeat(" and after it", 9)))
	var lines []string
	for ; len(text) > 76; text = text[76:] {
		lines = append(lines, text[:76])
	}
	return strings.Join(append(lines, text), "\r\n")
}

func TestTokensAreFoundInEncodings(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, format := range formats[:12] {
		value := sample(rng, format.parts)
		for name, encode := range encodings {
			for outerName, outer := range encodings {
				if name != "as it is" && (name == "base64 in lines" || outerName == "base64 in lines" || strings.HasPrefix(outerName, "a JSON")) {
					continue // what is written in lines, or escaped in part, is not encoded once more
				}
				text := outer(encode(value))
				if _, found := redact.New().Bytes([]byte("log: " + text + "\n")); len(found) == 0 {
					t.Errorf("%s in %s in %s is not found: %s", format.kind, name, outerName, text)
				}
			}
		}
	}
}

// What Airlock holds leaves in no encoding, nor in an encoding of one.
func TestHeldCredentialsInEncodings(t *testing.T) {
	for _, secret := range []string{"s3cr3t/Value+with=signs", "plainlowercase", "with space & <tags> 100%", "pa$$w(o)rd!*'~", "schlüssel-für-ünïcödé", `quote"and\slash`} {
		r := redact.New()
		r.Hold(secret)
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		forms := map[string]string{"as JSON": string(quoted), "as JSON in JSON": fmt.Sprintf("%q", quoted), "escaped for a path": url.PathEscape(secret)}
		for name, encode := range encodings {
			forms[name] = encode(secret)
		}
		for name, form := range forms {
			for which, clean := range map[string]func([]byte) ([]byte, []redact.Finding){"Held": r.Held, "Bytes": r.Bytes} {
				if _, found := clean([]byte("key: " + form + "\n")); redact.Counts(found)["held-credential"] == 0 {
					t.Errorf("%s lets %q through %s: %s", which, secret, name, form)
				}
			}
		}
		named := map[string]string{"dir/" + secret + ".txt": "a file's name", fmt.Sprintf(`{%s: 1}`, quoted): "a member's name"}
		for text, what := range named {
			if got, _ := r.Bytes([]byte(text)); !bytes.Contains(got, []byte("[redacted:held-credential]")) {
				t.Errorf("%q stands in %s: got %s", secret, what, got)
			}
		}
	}
}

// pieces are texts in which something is found because of what stands before
// it, or at some distance.
var pieces = []string{
	`password = "correct-horse-9"`, "API_KEY: 7f3a9c2e81b04d56a1c7", "Tel. 030 1234567", "ssn 536 22 1234", "credit card 4000 0566 5566 5556",
	"curl -s -u admin:hunter22x https://x", "Cookie: sid=8f14e45fceea167a5a36dedd4bea2543; theme=dark", `"name": "DB_PASSWORD", "value": "tr0ub4dor"`,
	"Authorization: Bearer 8f14e45fceea167a5a36dedd4bea2543", "Server=h;User Id=sa;Password=goodspec1;Database=d;", "ann.lee@corp.io", "from 81.2.69.142 port 22",
	"postgres://bob:hunter22@db/x", "IBAN DE89 3704 0044 0532 0130 00", `{"token":"\u0067hp_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"}`,
}

// However a text is cut into two, a stream makes of it what the whole gives.
func TestStreamCutAtEveryByte(t *testing.T) {
	filler := strings.Repeat("nothing to see in this line of a log\n", 300)
	for _, piece := range pieces {
		for shift := range len(piece) + 2 {
			text := filler[:4096-shift] + piece + "\n" + filler
			want, _ := redact.New().Bytes([]byte(text))
			var out bytes.Buffer
			s := redact.New().Stream(&out)
			for _, part := range []string{text[:8192], text[8192:]} {
				if _, err := s.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%q, cut %d bytes in: got something else than from the whole", piece, shift)
			}
		}
	}
}

// The same for many things after each other, and many cuts.
func TestStreamEqualsWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	var tokens []string
	for _, format := range formats {
		tokens = append(tokens, sample(rng, format.parts))
	}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for text.Len() < 20_000 {
			text.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
			text.WriteString(rapid.SampledFrom([]string{"\n", " ", ", ", "\n\n\t"}).Draw(t, "separator"))
			text.WriteString(rapid.SampledFrom(tokens).Draw(t, "token"))
			text.WriteString(strings.Repeat(" words,\n", rapid.IntRange(1, 60).Draw(t, "words")))
		}
		want, _ := redact.New().Bytes([]byte(text.String()))
		var out bytes.Buffer
		s := redact.New().Stream(&out)
		for rest := text.String(); rest != ""; {
			n := min(len(rest), rapid.IntRange(1, 6000).Draw(t, "size"))
			s.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		s.Close()
		if !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("got %d bytes, want %d, or others than from the whole", out.Len(), len(want))
		}
	})
}

// Whatever stands around a credential that Airlock holds, it does not leave.
func FuzzHeldNeverLeaves(f *testing.F) {
	const secret = "h3ld-Credential/of+ours"
	f.Add([]byte("before "), []byte(" after"), uint16(3))
	f.Add([]byte("password=\""), []byte("\" -----BEGIN PRIVATE KEY-----"), uint16(1))
	f.Add([]byte("%41%"), []byte("%zz\\u00"), uint16(5000))
	f.Fuzz(func(t *testing.T, before, after []byte, size uint16) {
		r := redact.New()
		r.Hold(secret)
		text := bytes.Join([][]byte{before, []byte(secret), after, []byte(base64.StdEncoding.EncodeToString([]byte(secret))), before}, nil)
		var streamed bytes.Buffer
		s := r.Stream(&streamed)
		for rest := text; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			s.Write(rest[:n])
			rest = rest[n:]
		}
		s.Close()
		whole, _ := r.Bytes(text)
		held, _ := r.Held(text)
		for how, got := range map[string][]byte{"Bytes": whole, "Held": held, "Stream": streamed.Bytes()} {
			if bytes.Contains(got, []byte(secret)) || bytes.Contains(got, []byte(base64.RawStdEncoding.EncodeToString([]byte(secret))[:28])) {
				t.Errorf("%s let the credential out of %q", how, text)
			}
		}
	})
}
