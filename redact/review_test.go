package redact_test

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// surroundingsOfSecrets write a secret as files, programs and protocols do. %[1]s is its name and %[2]s the value.
var surroundingsOfSecrets = map[string]string{
	"YAML": "service:\n  %[1]s: %[2]s\n  port: 80\n", "YAML, a list": "env:\n  - name: %[1]s\n    value: \"%[2]s\"\n",
	"YAML, flow": "db: {host: x, %[1]s: '%[2]s', port: 1}\n", "TOML": "[db]\n%[1]s = \"%[2]s\"\n",
	"INI": "[db]\n%[1]s=%[2]s\n; end\n", ".env": "export %[1]s='%[2]s'\nB=1\n",
	"a shell":    "%[1]s=%[2]s ./deploy.sh --now\n",
	"Dockerfile": "FROM x\nENV %[1]s %[2]s\n", "Makefile": "%[1]s := %[2]s\n", "Go": "var %[1]s = \"%[2]s\" // set\n",
	"Go, a raw string": "cfg := Config{%[1]s: `%[2]s`}\n", "Python": "    %[1]s = \"%[2]s\"  # noqa\n",
	"Python, a dict": "{'%[1]s': '%[2]s', 'n': 1}\n", "Python, environ": "os.environ['%[1]s'] = '%[2]s'\n",
	"JavaScript": "const %[1]s = '%[2]s';\n", "JavaScript, env": "process.env.%[1]s = \"%[2]s\"\n",
	"Java":   "private static final String %[1]s = \"%[2]s\";\n",
	"Kotlin": "val %[1]s: String = \"%[2]s\"\n", "C#": "string %[1]s = @\"%[2]s\";\n",
	"Ruby": "ENV['%[1]s'] ||= '%[2]s'\n",
	"PHP":  "define('%[1]s', '%[2]s');\n", "Rust": "const %[1]s: &str = \"%[2]s\";\n",
	"Swift": "let %[1]s = \"%[2]s\"\n",
	"Lua":   "local %[1]s = \"%[2]s\"\n", "Perl": "my $%[1]s = '%[2]s';\n", "PowerShell": "$env:%[1]s = \"%[2]s\"\n",
	"Windows": "set %[1]s=%[2]s\r\n", "SQL": "UPDATE users SET %[1]s = '%[2]s' WHERE id = 1;\n",
	"XML": "<config><%[1]s>%[2]s</%[1]s></config>\n", "XML, an attribute": "<add key=\"%[1]s\" value=\"%[2]s\"/>\n",
	"a header":   "POST /x HTTP/1.1\r\n%[1]s: %[2]s\r\n\r\n",
	"curl":       "curl -H '%[1]s: %[2]s' https://api.example.com/v1\n",
	"curl, data": "curl -d '%[1]s=%[2]s&x=1' https://api.example.com/v1\n",
	"a query":    "https://api.example.com/v1?x=1&%[1]s=%[2]s\n",
	"JSON":       `{"a":1,"%[1]s":"%[2]s"}`, "JSON, a list": `{"headers":[{"name":"%[1]s","value":"%[2]s"}]}`,
	"JSON in JSON": `{"body":"{\"%[1]s\":\"%[2]s\"}"}`, "a log": "2026-11-23T10:00:00Z INFO cfg %[1]s=%[2]s took=3ms\n",
	"a log of JSON": `{"level":"info","msg":"using %[1]s=%[2]s"}`, "CSV": "id,%[1]s,age\n1,%[2]s,7\n",
	"Terraform": "%[1]s = \"%[2]s\"\n", "Markdown": "| %[1]s | `%[2]s` |\n", "properties": "app.%[1]s: %[2]s\n",
	"systemd": "Environment=\"%[1]s=%[2]s\"\n", "a flag": "run --%[1]s=%[2]s -v\n",
	"a panic":    "panic: bad config {%[1]s:%[2]s n:1}\n",
	"a sentence": "Use the token %[2]s for staging.\n", "logfmt": "ts=1 %[1]s=\"%[2]s\" ok=true\n",
	"kubectl": "kubectl create secret generic x --from-literal=%[1]s=%[2]s\n",
	"GraphQL": "{ login(%[1]s: \"%[2]s\") { id } }\n",
}

// namesOfSecrets are names in the style of several languages.
var namesOfSecrets = []string{"api_token", "API_TOKEN", "apiKey", "client_secret", "SECRET_KEY", "authToken",
	"stripe_api_key", "DATABRICKS_TOKEN", "x-api-key", "access-token", "db_password", "DB_PASSWORD"}

// secretValues make values of the kinds that services issue.
var secretValues = map[string]func(*rand.Rand) string{
	"base36": func(rng *rand.Rand) string { return generated(rng, base36, 24+rng.IntN(24)) },
	"base62": func(rng *rand.Rand) string { return generated(rng, base62, 20+rng.IntN(44)) },
	"hex":    func(rng *rand.Rand) string { return generated(rng, "0123456789abcdef", 32) },
	"HEX":    func(rng *rand.Rand) string { return generated(rng, "0123456789ABCDEF", 40) },
	"base64": func(rng *rand.Rand) string { return generated(rng, base62+"+/", 43) + "=" },
	"base64url with a dot": func(rng *rand.Rand) string {
		return generated(rng, base62+"-_", 11) + "." + generated(rng, base62+"-_", 43)
	},
	"an unknown prefix": func(rng *rand.Rand) string { return "acme_live_" + generated(rng, base62, 24) },
	"a vendor's prefix with another length": func(rng *rand.Rand) string {
		return "dapi" + generated(rng, "0123456789abcdef", 30)
	},
	"a UUID": func(rng *rand.Rand) string {
		s := generated(rng, "0123456789abcdef", 32)
		return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
	},
}

// Issue 23: secrets of several kinds in the surroundings of languages, files and protocols. At most one in a
// hundred may remain in a surrounding, and one in two hundred of all.
func TestSecretsInFilesAndProtocols(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	total, leaked := 0, map[string]int{}
	for _, place := range slices.Sorted(maps.Keys(surroundingsOfSecrets)) {
		for _, name := range namesOfSecrets {
			for _, kind := range slices.Sorted(maps.Keys(secretValues)) {
				if place == "a sentence" && (kind == "a UUID" || name != namesOfSecrets[0]) {
					continue
				}
				value := secretValues[kind](rng)
				text := fmt.Sprintf(surroundingsOfSecrets[place], name, value)
				cleaned, _ := redact.New().Bytes([]byte(text))
				total++
				if strings.Contains(string(cleaned), value) {
					leaked[place+", "+kind]++
				}
				if !json.Valid([]byte(text)) {
					continue
				}
				if cleaned, _, err := redact.New().JSON([]byte(text)); err != nil || !json.Valid(cleaned) ||
					strings.Contains(string(cleaned), value) {
					leaked["as JSON: "+place+", "+kind]++
				}
			}
		}
	}
	sum := 0
	for _, n := range leaked {
		sum += n
	}
	t.Logf("%d of %d remain", sum, total)
	if total < 3000 || sum*200 > total {
		t.Errorf("%d of %d remain: %v", sum, total, leaked)
	}
}

// Row C-039: personal numbers are found in encodings, also if only the text before the encoding says what they are.
func TestPersonalNumbersInEncodings(t *testing.T) {
	for _, value := range []string{"123-45-6789", "536-22-1234", "ssn 536221234", "+14155550123", "415-555-0134",
		"4111111111111111", "4111 1111 1111 1111", "DE89370400440532013000", "93.184.216.34", "81.2.69.142",
		"bob@corp.io", "a@b.co"} {
		for _, end := range []string{"", "\n", "\r\n"} {
			for name, encode := range map[string]func([]byte) string{
				"base64": base64.StdEncoding.EncodeToString, "base64url": base64.RawURLEncoding.EncodeToString,
				"base64 twice": func(plain []byte) string {
					return base64.StdEncoding.EncodeToString([]byte(base64.RawStdEncoding.EncodeToString(plain)))
				},
				"base64 of UTF-16": func(plain []byte) string {
					return base64.StdEncoding.EncodeToString(bytes.Join(bytes.Split(plain, nil), []byte{0}))
				},
				"hex": hex.EncodeToString,
			} {
				for _, around := range []string{"%s", "x = %s\n", `{"a":"%s"}`, "b'%s'", "data:%s,",
					"$ echo | base64\n%s\n"} {
					text := fmt.Sprintf(around, encode([]byte(value+end)))
					if len(value) < 8 && name != "base64" && name != "base64url" { // too short to be decoded
						continue
					}
					if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) == text {
						t.Errorf("%q in %s is not found: %q", value+end, name, text)
					}
				}
			}
		}
	}
}

// Issue 31, row C-039: numbers of eleven bytes are found after letters that belong to other text and within bytes, and
// base32 after letters of the other case.
func TestShortNumbersInEncodings(t *testing.T) {
	for _, value := range []string{"536-22-1234", "81.2.69.142"} {
		for _, around := range []string{"\x00%s\xff", "\x00\x82%s\xff\x00", "\x00\x01\x82%s"} {
			encoded := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, around, value))
			if cleaned, _ := redact.New().Bytes([]byte(encoded)); string(cleaned) == encoded {
				t.Errorf("%s within %q is not found: %s", value, around, encoded)
			}
		}
		for name, encode := range map[string]func([]byte) string{
			"base64": base64.RawStdEncoding.EncodeToString, "base32": base32.StdEncoding.EncodeToString,
		} {
			for _, around := range []string{"/p/%s", "id%s", "id=%s;", "%s"} {
				text := fmt.Sprintf(around, encode([]byte(value)))
				if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) == text {
					t.Errorf("%s in %s is not found: %q", value, name, text)
				}
			}
		}
	}
}
