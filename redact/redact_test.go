package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// token joins the parts of a secret. Secrets are not written in one piece, so that scanners do not
// report this repository.
func token(parts ...string) string { return strings.Join(parts, "") }

func TestBytes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an AWS access key", "key " + token("AK", "IA", "IOSFODNN7EXAMPQE") + " ok",
			"key [redacted:aws-access-key] ok"},
		{"an AWS secret key", "aws_secret_access_key = " + token("wJalrXUtnFEMI/K7MDENG/", "bPxRfiCYEXAMPLEKEY"),
			"aws_secret_access_key = [redacted:aws-secret-key]"},
		{"a GitHub token", token("gh", "p_", strings.Repeat("a1B2", 9)), "[redacted:github-token]"},
		{"a Slack token", token("xo", "xb-", "123456789012-abcdefGHIJ"), "[redacted:slack-token]"},
		{"a Stripe key", token("sk", "_live_", "4eC39HqLyjWDarjtT1zdp7dc"), "[redacted:stripe-key]"},
		{"an Anthropic key", token("sk-", "ant-", "api03-", strings.Repeat("xY9_", 20)), "[redacted:anthropic-key]"},
		{"a JWT", token("eyJ", "hbGciOiJIUzI1NiJ9", ".", "eyJ", "zdWIiOiIxMjM0NTY3ODkwIn0", ".",
			"dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"), "[redacted:jwt]"},
		{"a private key", token("-----BEGIN RSA PRIV", "ATE KEY-----\nMIIEpAIBAAKCAQEA0m\n-----END RSA PRIV",
			"ATE KEY-----\nafter"), "[redacted:private-key]\nafter"},
		{"a password in an address", "postgres://bob:hunter22@db/x", "postgres://bob:[redacted:url-password]@db/x"},
		{"an e-mail address", "write to Ann.Lee+x@corp.co.uk.", "write to [redacted:email]."},
		{"a card", "pay 4111 1111 1111 1111 now", "pay [redacted:card] now"},
		{"an IBAN", "to DE89 3704 0044 0532 0130 00 today", "to [redacted:iban] today"},
		{"a social security number", "ssn 536-22-1234", "ssn [redacted:us-ssn]"},
		{"two things", "a@b.io and 536-22-1234", "[redacted:email] and [redacted:us-ssn]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, found := redact.New().Bytes([]byte(test.text))
			if string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if len(found) == 0 {
				t.Error("no finding was reported")
			}
		})
	}
}

func TestHarmlessTextStays(t *testing.T) {
	tests := []struct{ name, text string }{
		{"a digest", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		{"a UUID", "123e4567-e89b-12d3-a456-426614174000"},
		{"a card number with a wrong last digit", "4111 1111 1111 1112"},
		{"a phone-like number that no SSN has", "000-12-3456 666-12-3456 900-12-3456"},
		{"an icon", "icon@2x.png"},
		{"an example address", "ann@example.com"},
		{"a placeholder password", "postgres://user:password@localhost/db"},
		{"a port", "http://localhost:8080/x@y"},
		{"a decorator", "@pytest.fixture\ndef x(): pass"},
		{"a timestamp in nanoseconds", "1700000000123456789"},
		{"a module path", "github.com/a/b@v1.2.3"},
		{"prose", "the skeleton key, sk-ills and ghosts"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, found := redact.New().Bytes([]byte(test.text)); string(got) != test.text {
				t.Errorf("got %q with %v, want it unchanged", got, found)
			}
		})
	}
}

func TestHeldCredentials(t *testing.T) {
	const secret = "s3cr3t/Value+with=signs"
	r := redact.New()
	if !r.Hold(secret) {
		t.Fatal("the credential was not taken")
	}
	quoted, _ := json.Marshal(secret)
	forms := map[string]string{
		"as it is":                    secret,
		"in base64 at its start":      base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64 one byte in":       base64.StdEncoding.EncodeToString([]byte("x" + secret + "tail")),
		"in base64 two bytes in":      base64.StdEncoding.EncodeToString([]byte("xy" + secret + "t")),
		"in base64 for addresses":     base64.URLEncoding.EncodeToString([]byte("Bearer " + secret)),
		"in hex":                      hex.EncodeToString([]byte(secret)),
		"in upper-case hex":           strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"escaped for a query":         url.QueryEscape(secret),
		"escaped for a path":          url.PathEscape(secret),
		"escaped for JSON":            string(quoted),
		"backwards":                   "sngis=htiw+eulaV/t3rc3s",
		"twice, with text in between": secret + " and " + secret,
	}
	for name, text := range forms {
		t.Run(name, func(t *testing.T) {
			for which, clean := range map[string]func([]byte) ([]byte, []redact.Finding){"Held": r.Held,
				"Bytes": r.Bytes} {
				got, found := clean([]byte("<" + text + ">"))
				if !strings.Contains(string(got), "[redacted:held-credential]") || len(found) == 0 {
					t.Errorf("%s: got %q", which, got)
				}
			}
		})
	}
	if r.Hold("short") {
		t.Error("a credential of five bytes was taken: it would be found everywhere")
	}
	if got, _ := r.Held([]byte("ann@corp.io")); string(got) != "ann@corp.io" {
		t.Errorf("Held removed personal data: %q", got)
	}
}

func TestJSON(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"nothing to do", `{"a": [1, "x", null]}`, `{"a": [1, "x", null]}`},
		{"a text", `{"to":"ann@corp.io","n":1e2}`, `{"to":"[redacted:email]","n":1e2}`},
		{"a text written with escapes", `{"to":"ann\u0040corp.io"}`, `{"to":"[redacted:email]"}`},
		{"a member's name", `{"ann@corp.io":1}`, `{"[redacted:email]":1}`},
		{"a number", `{"card":4111111111111111}`, `{"card":"[redacted:card]"}`},
		{"quotes around it", `["say \"ann@corp.io\""]`, `["say \"[redacted:email]\""]`},
		{"a bare text", `"ann@corp.io"`, `"[redacted:email]"`},
		{"half a surrogate pair", `{"":["\ud800"]}`, `{"":["\ud800"]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := redact.New().JSON(json.RawMessage(test.raw))
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
	if _, _, err := redact.New().JSON(json.RawMessage(`{"a":`)); err == nil {
		t.Error("half a JSON value: got nil, want an error")
	}
}

func FuzzJSONStaysJSON(f *testing.F) {
	f.Add(`{"a":"ann@corp.io","b":[4111111111111111,-1.5e+3,"\ud83d\ude00\\"]}`)
	f.Add(`"postgres://a:bcd@x -----BEGIN PRIVATE KEY-----"`)
	f.Fuzz(func(t *testing.T, raw string) {
		r := redact.New()
		r.Hold("ann@corp")
		got, found, err := r.JSON(json.RawMessage(raw))
		if err != nil {
			if json.Valid([]byte(raw)) {
				t.Errorf("refused valid JSON: %v", err)
			}
			return
		}
		if !json.Valid(got) {
			t.Errorf("%s became %s", raw, got)
		}
		if len(found) == 0 && string(got) != raw {
			t.Errorf("%s became %s without a finding", raw, got)
		}
	})
}

func BenchmarkBytes(b *testing.B) {
	text := []byte(strings.Repeat(
		"The quick brown fox, 2026-01-02T03:04:05Z, id 123e4567-e89b-12d3-a456-426614174000, https://x.io/a?b=c\n",
		1000))
	r := redact.New()
	r.Hold("a-credential-of-ours")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Bytes(text)
	}
}

func TestNumbersHaveAnEnd(t *testing.T) {
	r := redact.New().Numbered()
	for i := range 10_000 {
		r.Bytes(fmt.Appendf(nil, "a%d@corp.io", i))
	}
	for text, want := range map[string]string{
		"a9999@corp.io": "[redacted:email-10000]",
		"new@corp.io":   "[redacted:email]",
	} {
		if got, _ := r.Bytes([]byte(text)); string(got) != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
