package redact_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// The alphabets of generated tokens.
const (
	base36 = "abcdefghijklmnopqrstuvwxyz0123456789"
	base62 = base36 + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// generated returns n random characters that contain letters and digits.
func generated(rng *rand.Rand, alphabet string, n int) string {
	for {
		b := make([]byte, n)
		changes := 0
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
			if i > 0 && (b[i] <= '9') != (b[i-1] <= '9') {
				changes++
			}
		}
		if changes >= n/4 {
			return string(b)
		}
	}
}

// Issue 23: a token without a vendor's form is found by the name of its service, of its variable or of a key
// next to it, in any language and quoting. Without an operator, the name has to be that of a service.
func TestTokensWithoutAForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 6))
	names := []string{"algolia_key", "TOGGL_API_TOKEN", "keycloakSecret", "mailgun.key", "storage_key", "AccountKey",
		"x-api-key", "posthog"}
	missed, all := map[string]int{}, 0
	for form, write := range map[string]string{
		"an environment": "A=1\n%s=%s\nB=2\n", "YAML": "a: 1\n%s: %s\nb: 2\n", "TOML": "%s = \"%s\"\n",
		"JSON": `{"a":1,"%s":"%s"}`, "JSON in JSON": `{"text":"{\"%s\":\"%s\"}"}`, "Go": "\t%s := \"%s\"\n",
		"Python": "%s = '%s'\n", "JavaScript": "const o = { '%s': `%s` };\n", "C++": "std::string %s{\"%s\"};\n",
		"Java": "props.setProperty(\"%s\", \"%s\");\n", "PHP": "$c['%s'] => '%s';\n",
		"a flag":     "run --%s %s --verbose\n",
		"a property": "java -D%s=%s Main\n", "a query": "GET /v1/items?page=2&%s=%s&x=1 HTTP/1.1\n",
		"a header": "%s: %s\r\nAccept: */*\r\n", "a log": "2026-01-02 info loaded %s=%s in 3ms\n",
		"copies": "%[1]s token = '%[2]s' | '%[2]s'\n", "a comment": "// %s: %s\n",
		"an element": "<config><%[1]s>%[2]s</%[1]s></config>\n", "a constant of C": "#define %s \"%s\"\n",
	} {
		for _, name := range names {
			for _, alphabet := range []string{base36, base62} {
				value := generated(rng, alphabet, 24+rng.IntN(20))
				if strings.HasSuffix(form, "header") && !strings.Contains(name, "-") || form == "an element" &&
					!strings.HasSuffix(strings.ToLower(name), "key") || form == "a constant of C" && name != "posthog" {
					continue
				}
				all++
				if got, _ := redact.New().Bytes([]byte(fmt.Sprintf(write, name, value))); strings.Contains(
					string(got), value) {
					missed[form+", "+name]++
				}
			}
		}
	}
	if len(missed) > 0 {
		t.Errorf("of %d tokens, these were missed: %v", all, missed)
	}
}

// A value that was found once is removed everywhere in a text and in all members of a JSON value.
func TestValuesAreRemovedEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 7))
	for range 100 {
		value := generated(rng, base62, 20+rng.IntN(20))
		text := "sent " + value + " to the host\napi_token = \"" + value + "\"\nretry with x" + value + ", done\n"
		if got, _ := redact.New().Bytes([]byte(text)); strings.Contains(string(got), value) {
			t.Errorf("%q became %q", text, got)
		}
		raw := fmt.Sprintf(`{"log":["sent %s"],"api_token":"%s","n":1}`, value, value)
		if got, _, err := redact.New().JSON([]byte(raw)); err != nil || strings.Contains(string(got), value) ||
			!json.Valid(got) {
			t.Errorf("%s became %s, %v", raw, got, err)
		}
	}
	// a word is not a value: it may occur in another meaning
	if got, _ := redact.New().Bytes([]byte(`password: "production"` + "\nenv: production\n")); !strings.Contains(
		string(got), "env: production") {
		t.Errorf("got %q", got)
	}
}
