package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

const (
	hexDigits = "0123456789abcdef"
	lower     = "abcdefghijklmnopqrstuvwxyz0123456789"
	upper     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	mixed     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	urlSafe   = mixed + "_-"
)

// formats are tokens as published by vendors, made of fixed and random parts. The random parts are
// generated in each run, so that scanners do not report this repository.
var formats = []struct {
	kind  string
	parts []any // a string, or draw
}{
	{"aws-access-key", []any{"AKIA", draw{upper, 16}}},
	{"aws-access-key", []any{"ASIA", draw{upper, 16}}},
	{"aws-bedrock-key", []any{"ABSK", draw{mixed, 128}}},
	{"google-api-key", []any{"AIza", draw{urlSafe, 35}}},
	{"google-oauth-token", []any{"ya29.", draw{urlSafe, 80}}},
	{"google-client-secret", []any{"GOCSPX-", draw{urlSafe, 28}}},
	{"azure-client-secret", []any{draw{mixed, 3}, "8Q~", draw{mixed, 34}}},
	{"digitalocean-token", []any{"dop_v1_", draw{hexDigits, 64}}},
	{"databricks-token", []any{"dapi", draw{hexDigits, 32}}},
	{"vault-token", []any{"hvs.", draw{urlSafe, 95}}},
	{"terraform-token", []any{draw{mixed, 14}, ".atlasv1.", draw{mixed, 67}}},
	{"pulumi-token", []any{"pul-", draw{hexDigits, 40}}},
	{"doppler-token", []any{"dp.pt.", draw{mixed, 43}}},
	{"planetscale-token", []any{"pscale_tkn_", draw{mixed, 43}}},
	{"supabase-key", []any{"sbp_", draw{hexDigits, 40}}},
	{"github-token", []any{"ghp_", draw{mixed, 36}}},
	{"github-token", []any{"github_pat_", draw{mixed, 22}, "_", draw{mixed, 59}}},
	{"gitlab-token", []any{"glpat-", draw{mixed, 20}}},
	{"bitbucket-password", []any{"ATBB", draw{mixed, 32}}},
	{"atlassian-token", []any{"ATATT3", draw{mixed, 186}}},
	{"npm-token", []any{"npm_", draw{mixed, 36}}},
	{"pypi-token", []any{"pypi-AgEIcHlwaS5vcmc", draw{urlSafe, 70}, "x"}},
	{"rubygems-key", []any{"rubygems_", draw{hexDigits, 48}}},
	{"docker-token", []any{"dckr_pat_", draw{mixed, 27}}},
	{"sourcegraph-token", []any{"sgp_", draw{hexDigits, 40}}},
	{"grafana-token", []any{"glsa_", draw{mixed, 32}, "_", draw{hexDigits, 8}}},
	{"newrelic-key", []any{"NRAK-", draw{upper, 27}}},
	{"dynatrace-token", []any{"dt0c01.", draw{upper, 24}, ".", draw{upper, 64}}},
	{"slack-token", []any{"xoxb-", draw{"0123456789", 12}, "-", draw{"0123456789", 12}, "-", draw{mixed, 24}}},
	{"telegram-token", []any{"1", draw{"0123456789", 9}, ":AA", draw{mixed, 33}}},
	{"twilio-key", []any{"SK", draw{hexDigits, 32}}},
	{"sendgrid-key", []any{"SG.", draw{mixed, 22}, ".", draw{mixed, 43}}},
	{"mailchimp-key", []any{draw{hexDigits, 32}, "-us14"}},
	{"brevo-key", []any{"xkeysib-", draw{hexDigits, 64}, "-", draw{mixed, 16}}},
	{"stripe-key", []any{"sk_live_", draw{mixed, 24}}},
	{"stripe-key", []any{"rk_test_", draw{mixed, 99}}},
	{"square-token", []any{"sq0atp-", draw{mixed, 22}}},
	{"shopify-token", []any{"shpat_", draw{hexDigits, 32}}},
	{"plaid-token", []any{"access-sandbox-", draw{hexDigits, 8}, "-", draw{hexDigits, 4}, "-", draw{hexDigits, 4}, "-",
		draw{hexDigits, 4}, "-", draw{hexDigits, 12}}},
	{"anthropic-key", []any{"sk-ant-api03-", draw{urlSafe, 93}, "AA"}},
	{"openai-key", []any{"sk-proj-", draw{mixed, 74}}},
	{"openai-key", []any{"sk-", draw{mixed, 20}, "T3BlbkFJ", draw{mixed, 20}}},
	{"model-key", []any{"sk-or-v1-", draw{hexDigits, 64}}},
	{"huggingface-token", []any{"hf_", draw{mixed, 34}}},
	{"replicate-token", []any{"r8_", draw{mixed, 37}}},
	{"groq-key", []any{"gsk_", draw{mixed, 52}}},
	{"xai-key", []any{"xai-", draw{mixed, 80}}},
	{"langsmith-key", []any{"lsv2_pt_", draw{hexDigits, 32}, "_", draw{hexDigits, 10}}},
	{"tavily-key", []any{"tvly-", draw{mixed, 32}}},
	{"linear-key", []any{"lin_api_", draw{mixed, 40}}},
	{"notion-token", []any{"ntn_", draw{mixed, 46}}},
	{"airtable-token", []any{"pat", draw{mixed, 14}, ".", draw{hexDigits, 64}}},
	{"figma-token", []any{"figd_", draw{mixed, 40}}},
	{"postman-key", []any{"PMAK-", draw{hexDigits, 24}, "-", draw{hexDigits, 34}}},
	{"tailscale-key", []any{"tskey-auth-", draw{mixed, 17}, "-", draw{mixed, 32}}},
	{"age-key", []any{"AGE-SECRET-KEY-1", draw{"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58}}},
	{"gcs-hmac-key", []any{"GOOG1E", draw{upper, 55}}},
	{"elastic-cloud-key", []any{"essu_", draw{mixed, 60}}},
	{"deno-token", []any{"ddp_", draw{mixed, 36}}},
	{"render-key", []any{"rnd_", draw{mixed, 32}}},
	{"amazon-oauth-secret", []any{"amzn1.oa2-cs.v1.", draw{hexDigits, 64}}},
	{"circleci-token", []any{"CCIPRJ_", draw{mixed, 22}, "_", draw{hexDigits, 40}}},
	{"packagist-token", []any{"packagist_uut_", draw{hexDigits, 68}}},
	{"cursor-key", []any{"key_", draw{hexDigits, 64}}},
	{"hubspot-token", []any{"pat-na1-", draw{hexDigits, 8}, "-", draw{hexDigits, 4}, "-", draw{hexDigits, 4}, "-",
		draw{hexDigits, 4}, "-", draw{hexDigits, 12}}},
	{"posthog-key", []any{"phx_", draw{mixed, 43}}},
	{"salesforce-key", []any{"3MVG9", draw{mixed, 80}}},
	{"discord-token", []any{"MTE5ODYyMjQ4MzQ3MTkyNTI0OA.", draw{mixed, 6}, ".", draw{mixed, 38}}},
	{"vault-token", []any{"s.", "aB3", draw{mixed, 21}}},
	{"age-key", []any{"AGE-SECRET-KEY-PQ-1", draw{"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58}}},
	{"slack-token", []any{"xapp-1-A", draw{upper, 10}, "-", draw{"0123456789", 13}, "-", draw{hexDigits, 64}}},
	{"password-hash", []any{"$2b$12$", draw{mixed, 53}}},
	{"jwt", []any{"eyJ", draw{mixed, 33}, ".eyJ", draw{mixed, 71}, ".", draw{urlSafe, 43}}},
}

type draw struct {
	from string
	n    int
}

func sample(rng *rand.Rand, parts []any) string {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			b.WriteString(part)
		case draw:
			for range part.n - 1 {
				b.WriteByte(part.from[rng.IntN(len(part.from))])
			}
			b.WriteByte(part.from[rng.IntN(min(len(part.from), 32))]) // does not end in - or _
		}
	}
	return b.String()
}

// Each published format is found in every context and in each encoding.
func TestPublishedFormats(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	places := map[string]func(string) string{
		"alone":         func(s string) string { return s },
		"in a sentence": func(s string) string { return "the key is " + s + ", keep it" },
		"in JSON":       func(s string) string { return `{"a":"` + s + `"}` },
		"in a shell":    func(s string) string { return "export X='" + s + "'\n" },
		"in YAML":       func(s string) string { return "x: " + s + "\ny: 1\n" },
		"in an address": func(s string) string { return "https://x.io/a?k=" + url.QueryEscape(s) + "&b=1" },
		"in base64":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte("key=" + s + "\n")) },
		"in base64url":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("~~~" + s)) },
		"in hex":        func(s string) string { return hex.EncodeToString([]byte(s)) },
		"in base64 of base64": func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
		},
		"percent-encoded":       func(s string) string { return "%20" + url.QueryEscape("a b "+s) },
		"after a line of noise": func(s string) string { return strings.Repeat("lorem ipsum 0123 ", 50) + "\n" + s },
	}
	for _, format := range formats {
		value := sample(rng, format.parts)
		for place, put := range places {
			got, found := redact.New().Bytes([]byte(put(value)))
			if bytes.Contains(got, []byte(value)) || len(found) == 0 {
				t.Errorf("seed %d: %s %s is not found: %s", seed, format.kind, place, put(value))
			}
			if place == "alone" && (len(found) != 1 || found[0].Kind != format.kind) {
				t.Errorf("%s: found as %v", format.kind, found)
			}
		}
	}
}

func TestSecretsByTheirNames(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a password in code", `password = "super$ecret"`, `password = "[redacted:password]"`},
		{"a password of letters", `"AdminPassword" : "thisismypassphrase"`, `"AdminPassword" : "[redacted:password]"`},
		{"a password in Ruby", `:password => '4ian1234',`, `:password => '[redacted:password]',`},
		{"a password in an environment", "DB_PASSWORD=Tr0ub4dor&3x\n", "DB_PASSWORD=[redacted:password]\n"},
		{"a token in YAML", "github_token: 7f3a9c2e81b04d56a1\n", "github_token: [redacted:secret]\n"},
		{"a secret in code", `String CLIENT_SECRET = "6fb1cff7690db9ac066cadbbde8e3c078efdabcf";`,
			`String CLIENT_SECRET = "[redacted:secret]";`},
		{"a key in a list", `field('API_KEY', '951bc382db9abad29c68634761dd6e19')`,
			`field('API_KEY', '[redacted:secret]')`},
		{"a connection string", "Server=h;User Id=sa;Password=goodspec;Database=d;",
			"Server=h;User Id=sa;Password=[redacted:password];Database=d;"},
		{"an Azure connection string", "AccountName=a;AccountKey=" + strings.Repeat("a1B2", 21) + "ab==;",
			"AccountName=a;AccountKey=[redacted:azure-storage-key];"},
		{"an XML setting", `<add key="MailPassword" value="Prestigio7$"/>`,
			`<add key="MailPassword" value="[redacted:password]"/>`},
		{"an XML element", `<password>s3cr3t-x</password>`, `<password>[redacted:password]</password>`},
		{"a sentence", `The password is 'centipede' for now`, `The password is '[redacted:password]' for now`},
		{"a netrc", "machine h login bob password bobknows", "machine h login bob password [redacted:password]"},
		{"a header", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
			"Authorization: Basic [redacted:authorization]"},
		{"a curl", `curl -u admin:hunter22 https://x`, `curl -u admin:[redacted:password] https://x`},
		{"a Django key", `SECRET_KEY = 'k3$(x)!q8#m1z&v7*c5^b2@n9+l0=p4%r6_t8-w2h0j5'`,
			`SECRET_KEY = '[redacted:secret]'`},
		{"a declaration with a type", `var apiToken string = "q8Zr2Lk0vXw93TbNc"`,
			`var apiToken string = "[redacted:secret]"`},
		{"an assignment that adds", `$apiToken .= "q8Zr2Lk0vXw93TbNc"`, `$apiToken .= "[redacted:secret]"`},
		{"an assignment of make", `API_TOKEN ?= "q8Zr2Lk0vXw93TbNc"`, `API_TOKEN ?= "[redacted:secret]"`},
		{"a default in code", `os.getenv("API_KEY", "q8Zr2Lk0vXw93TbNc")`, `os.getenv("API_KEY", "[redacted:secret]")`},
		{"a fallback in code", `process.env["API_KEY"] || "q8Zr2Lk0vXw93TbNc"`,
			`process.env["API_KEY"] || "[redacted:secret]"`},
		{"JSON in a text", `"{\"api_key\": \"q8Zr2Lk0vXw93TbNc\"}"`, `"{\"api_key\": \"[redacted:secret]\"}"`},
		{"an argument", `deploy --token q8Zr2Lk0vXw93TbNc now`, `deploy --token [redacted:secret] now`},
		{"an environment of Docker", "ENV DB_PASSWORD hunter22\n", "ENV DB_PASSWORD [redacted:password]\n"},
		{"a name and a value beside it", `- name: DB_PASSWORD` + "\n" + `  value: "hunter22"`,
			`- name: DB_PASSWORD` + "\n" + `  value: "[redacted:password]"`},
		{"a query", "https://x.io/?api_key=q8Zr2Lk0vXw93TbNc&page=2", "https://x.io/?api_key=[redacted:secret]&page=2"},
		{"a value under a vendor's name", `ALGOLIA = "dfd45bab36efa913cfdd711f2b690adb"`,
			`ALGOLIA = "[redacted:secret]"`},
		{"a UUID that a vendor gives as key", `heroku_api_key: 9b2f3c1e-7d64-4a8b-9c55-0e1f2a3b4c5d`,
			`heroku_api_key: [redacted:secret]`},
		{"a header of its own", `-H "X-Api-Token: 3fea6af1349166ea71c0"`, `-H "X-Api-Token: [redacted:secret]"`},
		{"cookies", "Cookie: sid=8f14e45fceea167a5a36dedd4bea2543; theme=dark\n", "Cookie: [redacted:cookie]\n"},
		{"a token as a user", "https://q8Zr2Lk0vXw93TbNc7Qe@git.corp.io/x",
			"https://[redacted:url-password]@git.corp.io/x"},
		{"a curl over lines", "curl https://x \\\n  --user  'bob:h0pk1ns~21s'",
			"curl https://x \\\n  --user  'bob:[redacted:password]'"},
		{"a statement of SQL", `CREATE USER bob IDENTIFIED BY 'hunter22';`,
			`CREATE USER bob IDENTIFIED BY '[redacted:password]';`},
		{"a WireGuard key", "PrivateKey = " + strings.Repeat("aB3d", 10) + "aB3=\n",
			"PrivateKey = [redacted:secret]\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := redact.New().Bytes([]byte(test.text)); string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCodeAndProseStay(t *testing.T) {
	texts := []string{
		`password = os.environ["DB_PASSWORD"]`, `token = getToken(user)`, `const secret = process.env.SECRET_KEY`,
		`"password": "string"`, `type="password" name="user"`, `password: { type: String, required: true }`,
		`passwordLabel:"Password:",remember:"Remember me:"`, `max_tokens: 4096`,
		`"nextPageToken": "CAUQAA1234567890abcdef"`,
		`token_type = "bearer"`, `secret_name: my-app-secret`, `private_key_path = "/etc/ssl/key.pem"`,
		`password=${DB_PASSWORD}`, `password: <your password here>`, `API_KEY=your-api-key-here`,
		`apiKey: "xxxxxxxxxxxxxxxx"`,
		`public_key = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"`, `import token from "./token"`,
		`privateKey ed25519.PrivateKey`,
		`key: AKIAIOSFODNN7EXAMPLE`, `token: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `API_KEY=glc_your-token-here`,
		`curl -u "$USER:$PASS" https://x`,
		`["password", "administrator-login"]`, `USERNAME_PASSWORD: 0x02`, `"pbkdf2-password": "~0.1.6"`,
		`clientSecret: "as2-client-secret"`,
		`progressToken: ProgressTokenSchema$1`, `TOKEN_PATTERN = "[A-Za-z0-9._~+/-]+=*"`,
		`gpg --recv-keys 890C08DB8579162FEE0DF9DB8BEAB4DFCF555EF4`,
		`pkcs8.indexOf("-----BEGIN PRIVATE KEY-----") !== 0) { throw new TypeError("it is no key"); }`,
		`Cookie: theme=dark; lang=en`,
		`github.com/a/b: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b`,
		`gitlab_commit = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"`,
		`authorization: "token 0000000000000000000000000000000000000001"`,
		`createTokenAuth("ghp_PersonalAccessToken01245678900000000")`,
		`commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b`, `sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=`,
		`id: 123e4567-e89b-12d3-a456-426614174000`,
		`"integrity": "sha512-abc/def+0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=="`,
		`The secret of success: never give up`, `Tokens are cheap; keys are not.`,
		`00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16`,
		`v1.2.3.4`, `OID 2.5.29.31`, `at 12:34:56.789`, `00:1b:44:11:3a:b7`,
		`127.0.0.1 10.0.0.1 192.168.1.1 ::1 fe80::1`,
		`std::vector<int> a::b::c`, `user@1000.service`, `12345-678-9012`, `tel. 4711`, `1,234,567.89`,
		`+1.022137300`, `2026-11-21T10:00:00+01:00`, `555-1234`, `ISBN 978-3-16-148410-0`, `4000 0000 0000 0000`,
		`/usr/lib/python3/dist-packages/some/long/path/with/many/parts/file.py`,
		`data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk`,
	}
	for _, text := range texts {
		if got, found := redact.New().Bytes([]byte(text)); len(found) > 0 {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestNumberedMarkers(t *testing.T) {
	r := redact.New().Numbered()
	got, _ := r.Bytes([]byte("ann@corp.io wrote to bob@corp.io"))
	more, _ := r.Bytes([]byte("bob@corp.io answered"))
	if want := "[redacted:email-1] wrote to [redacted:email-2]"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := "[redacted:email-2] answered"; string(more) != want {
		t.Errorf("got %q, want %q", more, want)
	}
	if other, _ := redact.New().Numbered().Bytes([]byte("bob@corp.io")); string(other) != "[redacted:email-1]" {
		t.Errorf("another run: got %q", other)
	}
}

func TestJSONByName(t *testing.T) {
	got, found, err := redact.New().JSON(
		[]byte(`{"user":"ann","password":"correcthorse","api_key":"k3y-1234-x","token_count":"12345678",` +
			`"nextPageToken":"CAUQAA12"}`))
	want := `{"user":"ann","password":"[redacted:password]","api_key":"[redacted:secret]","token_count":"12345678",` +
		`"nextPageToken":"CAUQAA12"}`
	if err != nil || string(got) != want || redact.Counts(found)["secret"] != 1 {
		t.Errorf("got %s, %v, %v, want %s", got, found, err, want)
	}
}

// Text made to be slow is removed if the budget does not suffice to search it.
func TestHostileTextIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"anchors without end":   strings.Repeat("eyJ-", 1<<17),
		"names without values":  strings.Repeat("password=", 1<<16),
		"openings of keys":      strings.Repeat("-----BEGIN ", 1<<17),
		"at signs":              strings.Repeat("a@", 1<<18),
		"digits and separators": strings.Repeat("4 ", 1<<18),
		"colons":                strings.Repeat("a:", 1<<18),
		"base64 of base64":      base64.StdEncoding.EncodeToString([]byte(strings.Repeat("QUFB", 1<<18))),
		"percent signs":         strings.Repeat("%41", 1<<17),
		"escapes":               strings.Repeat(`\u0041`, 1<<16),
		"backslashes":           strings.Repeat(`\\`, 1<<18),
		"cookies":               strings.Repeat("cookie: ", 1<<16),
		"arguments of curl":     strings.Repeat("curl -u ", 1<<16),
		"names and operators":   strings.Repeat("token: ", 1<<16),
		"vendors' names":        strings.Repeat("stripe=", 1<<16),
		"parts of a run":        strings.Repeat("a=b-", 1<<17),
		"lines of base64":       strings.Repeat(strings.Repeat("QUFB", 19)+"\n", 1<<13),
		"pipes":                 strings.Repeat("|", 1<<19),
		"keys of NATS":          strings.Repeat("SUA ", 1<<17),
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := redact.New().Bytes([]byte(text))
			if len(got) > len(text)+100 {
				t.Errorf("%d bytes became %d", len(text), len(got))
			}
		})
	}
}

func FuzzBytes(f *testing.F) {
	f.Add([]byte("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.x +49 30 1234567 4111 1111 1111 1111 a@b.io %41%42 2a02::1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := redact.New()
		got, found := r.Bytes(text)
		if len(found) == 0 && !bytes.Equal(got, text) {
			t.Errorf("%q became %q without a finding", text, got)
		}
	})
}

// The additional cost of the first use.
func BenchmarkFirstUse(b *testing.B) {
	for b.Loop() {
		redact.NewRules()
	}
}
