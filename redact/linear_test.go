package redact_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/redact"
)

// overdraft is the maximum number of units by which the last step of a search may exceed the
// budget.
const overdraft = 1 << 20

// repeated returns a text of n bytes.
func repeated(unit string, n int) []byte {
	return []byte(strings.Repeat(unit, n/len(unit)+1))[:n]
}

// hostileUnits are texts that made redaction slow when repeated, and the characteristic text of
// everything that is decoded.
var hostileUnits = []string{
	"password=", `password="x`, "password: a", "token: ", "secret ", "name secret ", `"name": "key", "value": `,
	"api_key=eyJ", "eyJ", "eyJhbGciOiJ.eyJ", "://a:b@", "://",
	"-----BEGIN PRIVATE KEY-----", "-----END", "cookie: a=b;", "authorization: basic ",
	"insert into a (password) values ('x'),", "insert into ",
	`\u0041`, `\\u0041`, "%2541", "&amp;#65;", "=3D3D", "\x1b[31m", `\x1b[31m%41&#65;=41`, "41:42:", "65, 66, ",
	"00000000: 4142 4344  ABCD\n", "QUJDREVGR0hJSktM\n",
	"H4sIAAAAAAAA/", "a@b.co,", "a@", "1234-", "+1 ", "4111 1111 ", "::1:", "secret,password,x\n", "| password ",
	"curl -u a:b ", "akia", "{[(", `"'`, "\\\\", "=\n", "xghp_", "MII", "0x41,",
	"4142 4344 ", "41 42 ", "x = <<EOF\n", "token: | # a\n a\n", "\n\nname=\"password\"\r\nContent-A: b\r\n",
	"- value: '{", `password = "a" -> "`,
	"{\n", "[\n", `{"password":"a1"}` + "\n", `[["password"],["a1"]],`, `{"a":"{\"token\":`,
	"<tr><th>password</th>", "<th>token ", "**key**: ",
	"echo a | sudo -S ", "pass ", "pass: “a", "token → ", "password .... ", "secret is 'a", "arn:aws:a:b:1:secret:",
	"put-parameter --value a ", "wifi:P:",
}

// Issue 23: 16 KiB of password= took 1.5 seconds, and 1 MiB took 6. The cost of a text is at most
// linear in its length.
func TestRedactionIsLinear(t *testing.T) {
	r := redact.New()
	r.Hold("a-credential-of-ours")
	r.Prepare()
	for _, unit := range hostileUnits {
		testenv.Linear(t, unit, 8<<10, func(n int) func() {
			text := repeated(unit, n)
			return func() { r.Bytes(text) }
		})
		testenv.Linear(t, unit+" as a member", 8<<10, func(n int) func() {
			text := []byte(`{"a":[` + strings.TrimSuffix(strings.Repeat(asJSON(unit)+",", n/(len(unit)+4)), ",") + "]}")
			return func() { _, _, _ = r.JSON(text) }
		})
	}
}

// Issue 23: the same for the other functions that read what a program prints or a tool returns.
func TestEachRedactionIsLinear(t *testing.T) {
	r := redact.New()
	r.Hold("a-credential-of-ours")
	r.Prepare()
	chosen := r.With(redact.Personal{All: redact.Choices{"email": redact.Mask, "phone": redact.Keep},
		Servers: map[string]redact.Choices{"crm": {"email": redact.Keep}}})
	logger := slog.New(r.Handler(slog.NewTextHandler(io.Discard, nil)))
	units := append([]string{"a-credential-of-our", "YS1jcmVkZW50aWFs", "%61-credential", "a@b.co,", "+1 415 555 0101 ",
		"password="}, testenv.Repetitions...)
	testenv.LinearTexts(t, units, 4<<10, map[string]func(string){
		"Held":      func(s string) { r.Held([]byte(s)) },
		"HeldJSON":  func(s string) { _, _, _ = r.HeldJSON([]byte(asJSON(s))) },
		"JSONTexts": func(s string) { _, _ = r.JSONTexts([]byte(asJSON(s))) },
		"Learn":     func(s string) { chosen.Learn("crm", []byte(asJSON(s))) },
		"choices":   func(s string) { chosen.Bytes([]byte(s)) },
		"the log":   func(s string) { logger.Info("a", slog.String("text", s)) },
	})
}

// Issue 23: lists of bytes behind a text that had used up the budget were read again from each of their bytes, so
// 256 KiB took 90 seconds. Nothing is decoded after the budget.
func TestWhatFollowsTheBudgetIsLinear(t *testing.T) {
	r := redact.New()
	r.Prepare()
	for _, unit := range []string{"41:42:", "41 42 ", "4142 4344 ", "65, 66, ", "QUJDREVGR0hJSktM\n", `\u0041`, "%2541",
		"=3D3D", "00000000: 4142 4344  ABCD\n"} {
		testenv.Linear(t, unit+" after the budget", 32<<10, func(n int) func() {
			text := append(repeated("password= ", n/2), repeated(unit, n/2)...)
			return func() { r.Bytes(text) }
		})
	}
}

// A search does not take more units than its budget, whatever word is repeated.
func TestWorkIsBounded(t *testing.T) {
	for _, unit := range append(redact.Anchors(), hostileUnits...) {
		if unit == "" {
			continue
		}
		for _, behind := range []string{"", `: "a1B2`} {
			if spent, limit := redact.Work(repeated(unit+behind, 2<<10)); spent > limit+overdraft {
				t.Errorf("%q took %d units of %d", unit+behind, spent, limit)
			}
		}
	}
}

// Ordinary text stays far below its budget: 16 KiB of lines as printed by programs are searched
// completely.
func TestOrdinaryTextIsSearchedToTheEnd(t *testing.T) {
	for name, line := range map[string]string{
		"names of secrets": "level=info msg=\"refreshed token for user 17\" token_count=3 password_age=12d\n",
		"a log":            "2026-01-02T03:04:05Z GET https://a.example/x?id=7&q=a%20b 200 12ms \"Mozilla/5.0\"\n",
		"JSON": `{"id":17,"name":"item \"a\"","url":"https:\/\/a.example\/x","password":null,"tokens":12}` +
			"\n",
		"source": "\tif token := strings.TrimSpace(r.Header.Get(\"X-Token\")); token != \"\" { // the secret\n",
		"YAML":   "  - name: DB_PASSWORD\n    valueFrom: {secretKeyRef: {name: db, key: password}}\n",
	} {
		text := repeated(line, 16<<10)
		if spent, limit := redact.Work(text); spent > limit/2 {
			t.Errorf("%s: %d units of %d", name, spent, limit)
		}
		if got, found := redact.New().Bytes(text); len(found) > 0 || !bytes.Equal(got, text) {
			t.Errorf("%s: got %v", name, found)
		}
	}
}

// The work for any repeated text stays within its budget.
func FuzzRedactionIsLinear(f *testing.F) {
	for _, unit := range hostileUnits {
		f.Add(unit)
	}
	f.Fuzz(func(t *testing.T, unit string) {
		if unit == "" || len(unit) > 1<<10 {
			return
		}
		for _, n := range []int{4 << 10, 32 << 10} {
			if spent, limit := redact.Work(repeated(unit, n)); spent > limit+overdraft {
				t.Errorf("%q, %d bytes: %d units of %d", unit, n, spent, limit)
			}
		}
	})
}
