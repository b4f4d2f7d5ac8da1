package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/redact"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func asJSON(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// surroundings are texts that code can print directly before and after a token, and encodings in
// which it can be among other text.
var surroundings = map[string]func(string) string{
	"behind a line break that is escaped": func(s string) string { return `line\n` + s },
	"between escaped tabs":                func(s string) string { return `a\t` + s + `\tb` },
	"behind an escaped carriage return":   func(s string) string { return `a\r\n` + s + `\r\nb` },
	"behind an escape that was escaped":   func(s string) string { return `a\\n` + s + `\\nb` },
	"behind a line break":                 func(s string) string { return "a\n" + s + "\nb" },
	"in a terminal's colour":              func(s string) string { return "\x1b[31m" + s + "\x1b[0m" },
	"in an escaped colour":                func(s string) string { return `\x1b[1;31m` + s + `\x1b[0m` },
	"in a colour escaped as in JSON":      func(s string) string { return `\u001b[31m` + s + `\u001b[0m` },
	"behind an octal escape":              func(s string) string { return `\033[31m` + s + `\033[0m` },
	"behind an escaped character":         func(s string) string { return `x\x0a` + s },
	"behind one of Unicode":               func(s string) string { return `x\u000a` + s },
	"behind one of an address":            func(s string) string { return "q=%0A" + s },
	"behind a quote within Python's repr": func(s string) string { return `['it\'s ` + s + `\n']` },
	"in JSON in a text":                   func(s string) string { return `got {"a": "\n` + s + `"}` },
	"in a repr of a repr":                 func(s string) string { return `'{\'k\': "it\\\'s ` + s + `\\n"}'` },
	"behind a character of eight digits":  func(s string) string { return `a\U0000000a` + s + `\U0000000ab` },
	"behind a character in braces":        func(s string) string { return `a\u{a}` + s + `\u{a}b` },
	"behind PowerShell's escape":          func(s string) string { return "a`n" + s + "`nb" },
	"in a colour of 24 bits":              func(s string) string { return "\x1b[38;2;255;100;200m" + s + "\x1b[39m" },
	"in a colour of 256":                  func(s string) string { return "\x1b[38;5;196m" + s + "\x1b[K" },
	"behind a character reference":        func(s string) string { return `a&#10;` + s + `&#x0A;b` },
	"in quotes of XML":                    func(s string) string { return `{&#x27;k&#x27;: &quot;` + s + `&quot;}` },
	"in character references alone":       func(s string) string { return everyByte(s, "&#%d;") },
	"in hexadecimal references alone":     func(s string) string { return everyByte(s, "&#x%x;") },
	"in escapes of eight digits":          func(s string) string { return everyByte(s, `\U%08x`) },
	"in escapes in braces":                func(s string) string { return everyByte(s, `\u{%x}`) },
	"in escapes of an old JavaScript":     func(s string) string { return everyByte(s, "%%u%04x") },
	"in UTF-16":                           func(s string) string { return everyByte(s, "%c\x00") },
	"twice in one line":                   func(s string) string { return s + " " + s },
	"in a block of YAML": func(s string) string {
		return "a: |\n  line\n  " + s +
			"\n  end\nb: >-\n  x"
	},
	"in a here document":               func(s string) string { return "cat <<EOF\n" + s + "\nEOF\n" },
	"behind a semicolon of an address": func(s string) string { return `https://a.example/x?a=1;b=` + s + `;c=2` },
	"in a path of Windows":             func(s string) string { return `C:\Users\bob\` + s + `\x.txt` },
	"behind letters of another script": func(s string) string { return "密钥" + s + "。" },
	"percent-encoded JSON, encoded twice": func(s string) string {
		return url.QueryEscape(
			url.QueryEscape(`{"a":"` + s + `"}`))
	},
	"base64 of JSON in indented lines": func(s string) string {
		text := b64(strings.Repeat("x y ", 30) + s + strings.Repeat(" z", 60))
		lines := "data:\n"
		for ; len(text) > 64; text = text[64:] {
			lines += "  " + text[:64] + "\n"
		}
		return lines + "  " + text
	},
	"in JSON in JSON":         func(s string) string { return asJSON(asJSON("x\n" + s + "\ny")) },
	"in JSON in JSON in JSON": func(s string) string { return asJSON(asJSON(asJSON("x\n" + s))) },
	"in a traceback": func(s string) string {
		return "ValueError: bad value " + s +
			": expected another"
	},
	"before a full stop":                     func(s string) string { return "it is " + s + "." },
	"before an ending":                       func(s string) string { return s + ".txt" },
	"in a path":                              func(s string) string { return "/srv/" + s + "/b" },
	"before a hyphen":                        func(s string) string { return s + "-x" },
	"before an underscore":                   func(s string) string { return s + "_x" },
	"behind a hyphen":                        func(s string) string { return "x-" + s },
	"behind an underscore":                   func(s string) string { return "x_" + s },
	"in a cell of CSV":                       func(s string) string { return "1,ann," + s + ",x" },
	"in a cell of a table":                   func(s string) string { return "| 1 |" + s + "| x |" },
	"between tabs":                           func(s string) string { return "1\t" + s + "\tx" },
	"base64 before other text":               func(s string) string { return b64(s) + " and more" },
	"base64 before a hyphen":                 func(s string) string { return b64(s) + "-more" },
	"base64 before a full stop":              func(s string) string { return strings.TrimRight(b64(s), "=") + ".more" },
	"base64 with letters stuck to it":        func(s string) string { return "abc" + b64("xx "+s+" yy") + "zzz" },
	"base64 of bytes around it":              func(s string) string { return b64("\x00\x01\xfe" + s + "\xff\x00") },
	"hex before other letters":               func(s string) string { return hex.EncodeToString([]byte(s)) + "zzz" },
	"hex before an underscore":               func(s string) string { return hex.EncodeToString([]byte(s)) + "_file" },
	"hex behind a digit of something else":   func(s string) string { return "a" + hex.EncodeToString([]byte(s)) },
	"base64 in base64":                       func(s string) string { return b64(b64("x " + s)) },
	"hex in base64":                          func(s string) string { return b64(hex.EncodeToString([]byte(s))) },
	"base64 in hex":                          func(s string) string { return hex.EncodeToString([]byte(b64(s))) },
	"base64 in an address":                   func(s string) string { return url.QueryEscape(b64("?" + s + "?")) },
	"an address in base64":                   func(s string) string { return b64(url.QueryEscape("a/" + s)) },
	"base64 of JSON, in JSON":                func(s string) string { return asJSON(b64(asJSON("x\n" + s))) },
	"in an address of every byte, in base64": func(s string) string { return b64(everyByte(s, "%%%02X")) },
	"in escapes of every byte, in JSON":      func(s string) string { return asJSON(everyByte(s, `\x%02x`)) },
	"base64 of a page of other text around it": func(s string) string {
		return b64(strings.Repeat("some words. ", 300) + s + strings.Repeat(" and more", 300))
	},
}

// Every kind of token is found in all surroundings.
func TestTokensInSurroundings(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 11))
	for _, format := range formats {
		value := sample(rng, format.parts)
		for name, surround := range surroundings {
			text := surround(value)
			got, found := redact.New().Bytes([]byte(text))
			if len(found) == 0 || strings.Contains(string(got), value) ||
				strings.Contains(decoded(string(got)), value) {
				t.Errorf("%s %s comes out: %.200s became %.200s", format.kind, name, text, got)
			}
		}
	}
}

func decoded(s string) string {
	plain, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(plain)
}

const long = "kJ8xQ2mZ4vN7bR1tW5yH9cL3pD6fG0sA"

func TestNamedValues(t *testing.T) {
	secrets := map[string]string{
		"a value of 200 characters":     fmt.Sprintf(`api_key = "%s"`, strings.Repeat(long, 7)[:200]),
		"a value of 1,000 characters":   fmt.Sprintf(`"client_secret": "%s"`, strings.Repeat(long, 32)[:1000]),
		"a value of 6,000 characters":   fmt.Sprintf(`export SESSION_TOKEN=%s`, strings.Repeat(long, 190)[:6000]),
		"a password of 400 characters":  fmt.Sprintf(`password: "%s"`, strings.Repeat(long, 13)[:400]),
		"a value whose end was cut off": `{"api_key": "` + long,
		"a name before its value":       `{"name":"DB_PASSWORD","value":"` + long + `"}`,
		"a value before its name":       `{"value":"` + long + `","name":"DB_PASSWORD"}`,
		"members between them":          `{"name": "DB_PASSWORD", "type": "plain", "value": "` + long + `"}`,
		"the same in YAML":              "env:\n- name: DB_PASSWORD\n  value: " + long + "\n",
		"in YAML the other way round":   "env:\n- value: " + long + "\n  name: DB_PASSWORD\n",
		"the same in escaped JSON":      `"{\"key\":\"API_TOKEN\",\"value\":\"` + long + `\"}"`,
		"a column of CSV":               "id,user,password,age\n1,bob," + long + ",7\n",
		"a column of CSV with quotes":   "\"user\",\"api_key\"\n\"lee, ann\",\"" + long + "\"\n",
		"a column of CSV as repr":       `'user,password\nbob,` + long + `\n'`,
		"a column with tabs":            "user\tapi_key\nbob\t" + long + "\n",
		"a column with semicolons":      "user;token;n\nbob;" + long + ";1\n",
		"a column of Markdown":          "| user | password |\n|---|---|\n| bob | " + long + " |\n",
		"a column of psql":              " user | password \n------+----------\n bob  | " + long + "\n",
		"a column that is aligned": "NAME     PASSWORD                          AGE\nbob      " + long +
			"  5d\n",
		"a password with @ in an address": "postgres://bob:" + "p@" + long + "@db.example.com/x",
		"one with a slash and a colon":    "amqp://bob:" + "a/b:" + long + "@mq:5672/x",
		"a password in a sentence":        "the password for staging is " + long + ", ok",
		"a password behind a quote":       `set password to "` + long + `"`,
		"a password in a form":            "b'password=" + long + "&user=bob'",
		"a word behind it":                long + " is our token for staging",
		"a word before it":                "the API key for staging is " + long + ", keep it",
		"a word in a table":               "token (prod)  " + long,
		"the first line of a key":         "1: MIIEpAIBAAKCAQEA" + long + long[:16],
		"a line of a key":                 "x\n" + long + "+/" + long[:30] + "\ny\n",
		"lines of a key with numbers": token("1  -----BEGIN RSA PRIV", "ATE KEY-----\n2  ") + long + long +
			"\n3  " + long + long + "\n",
	}
	for name, text := range secretsInFormats(long[:20]) {
		secrets[name] = text
	}
	for name, text := range secretsInFormats("hV7q!kd2Rw") {
		got, found := redact.New().Bytes([]byte(text))
		if len(found) == 0 || strings.Contains(string(got), "hV7q!kd2Rw") {
			t.Errorf("%s: %.200q became %.200q", name, text, got)
		}
	}
	for name, text := range secrets {
		t.Run(name, func(t *testing.T) {
			got, found := redact.New().Bytes([]byte(text))
			if len(found) == 0 || strings.Contains(string(got), long[:20]) {
				t.Errorf("%.200q became %.200q", text, got)
			}
		})
	}
}

// secretsInFormats returns a value under the name of a password as programs and languages print it.
func secretsInFormats(v string) map[string]string {
	return map[string]string{
		"YAML's block":            "db:\n  password: |\n    " + v + "\n  user: bob\n",
		"YAML's folded block":     "password: >-\n  " + v + "\n",
		"YAML's tag":              "password: !!str " + v + "\n",
		"YAML's anchor":           "password: &pw " + v + "\n",
		"TOML's three quotes":     "password = \"\"\"\n" + v + "\"\"\"\n",
		"a colon on its own line": "{\n  \"password\"\n  :\n  \"" + v + "\"\n}",
		"quotes of XML":           `{&#34;password&#34;:&#34;` + v + `&#34;}`,
		"quotes of a template":    `{&#x27;password&#x27;: &#x27;` + v + `&#x27;}`,
		"colours":                 "\x1b[33mpassword\x1b[0m=\x1b[32m" + v + "\x1b[0m",
		"escaped colours":         `\x1b[33mpassword\x1b[0m: \x1b[32m` + v + `\x1b[0m`,
		"Rust's option":           `Config { password: Some("` + v + `") }`,
		"Rust's string":           `password: String::from("` + v + `")`,
		"PHP's var_dump":          "[\"password\"]=>\n  string(10) \"" + v + "\"",
		"PHP's serialize":         fmt.Sprintf(`s:8:"password";s:%d:"%s";`, len(v), v),
		"an object with a value":  `"db_password": {"value": "` + v + `", "type": "string"}`,
		"an object of DynamoDB":   `{"password": {"S": "` + v + `"}}`,
		"a parameter's path":      `{"Name":"/prod/db/password","Type":"SecureString","Value":"` + v + `"}`,
		"a part of a form":        "Content-Disposition: form-data; name=\"password\"\r\n\r\n" + v + "\r\n--",
		"an aligned list":         "Key         Value\n---         -----\npassword    " + v + "\n",
		"a list with tabs":        "user\tbob\nx\npassword\t" + v + "\n",
		"psql's expanded table":   "user     | bob\npassword | " + v + "\n",
		"a table with a frame": "┌──────┬──────────┐\n│ user │ password │\n├──────┼──────────┤\n│ bob  │ " + v +
			" │\n└──────┴──────────┘",
		"Markdown's bold":     "**Password:** " + v,
		"setx":                `setx DB_PASSWORD "` + v + `"`,
		"setenv":              "setenv DB_PASSWORD " + v,
		"fish":                "set -x DB_PASSWORD " + v,
		"mysql":               "mysql -ubob -p" + v + " db",
		"redis-cli":           "redis-cli -h x -a " + v,
		"docker login":        "docker login -u bob -p " + v,
		"sshpass":             "sshpass -p " + v + " ssh a",
		"an address of MySQL": "bob:" + v + "@tcp(h:3306)/db",
		".pgpass":             "h:5432:db:bob:" + v,
		"a statement of SQL":  "ALTER USER bob PASSWORD '" + v + "'",
	}
}

func TestSecretsOfJSONByWhatStandsAround(t *testing.T) {
	pem := []string{token("-----BEGIN PRIV", "ATE KEY-----"), long + long, long[:20] + "==",
		token("-----END PRIV", "ATE KEY-----")}
	lines, err := json.Marshal(pem)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a member":            `{"password":"` + long + `"}`,
		"a list under a name": `{"tokens":["` + long + `","x"]}`,
		"a name and a value":  `{"name":"DB_PASSWORD","value":"` + long + `"}`,
		"a value and a name":  `{"value":"` + long + `","valueFrom":null,"name":"DB_PASSWORD"}`,
		"pairs":               `[["DB_PASSWORD","` + long + `"],["LOG","debug"]]`,
		"a table with a head": `[["user","password"],["bob","` + long + `"]]`,
		"columns and rows":    `{"columns":["user","password"],"rows":[["bob","` + long + `"]]}`,
		"columns that have types": `{"fields":[{"name":"user","type":"text"},{"name":"api_key","type":"text"}],` +
			`"rows":[["bob","` + long + `"]]}`,
		"a header":                    `{"Authorization":"Bearer ` + long + `"}`,
		"lines of a key":              string(lines),
		"a column of CSV in a member": `{"csv":"user,password\nbob,` + long + `\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, found, err := redact.New().JSON([]byte(text))
			if err != nil || len(found) == 0 || strings.Contains(string(got), long[:20]) || !json.Valid(got) {
				t.Errorf("%s became %s, %v", text, got, err)
			}
		})
	}
}

// Descriptions of secrets, and the text around secrets, are left.
func TestStructureStays(t *testing.T) {
	page := strings.Repeat(
		`{"id":17,"name":"item","tags":["a","b"],"price":1.5,"created":"2026-01-02T00:00:00Z","token_count":7},`, 300)
	for name, text := range map[string]string{
		"a JSON Schema": `{"password":{"type":"string"}}`,
		"a larger one": `{"type":"object","properties":{"password":{"type":"string","format":"password",` +
			`"minLength":8},"token":{"$ref":"#/$defs/Token"}},"required":["password","token"]}`,
		"one in YAML": "password:\n  type: string\n  minLength: 8\ntoken:\n  type: string\n",
		"one in YAML with quotes": "password:\n  \"type\": \"string\"\n\"secret\":\n  \"description\": \"unknown " +
			"to others\"\n",
		"types of TypeScript": "interface A { password: string; token?: string | null; apiKey: \"a\" | \"b\"; " +
			"secret: Secret<string> }",
		"a function of Python": "def login(password: str, token: Optional[str] = None) -> Session: ...",
		"a request's parameters": `{"name":"password","in":"query","schema":{"type":"string"},"description":"what ` +
			`the user chose"}`,
		"base64 of 30 kB of JSON": b64(page),
		"the same in JSON":        asJSON(b64(page)),
		"zeros": "AKIA0000000000000000 ghp_000000000000000000000000000000000000 " +
			"api_key=00000000000000000000000000000000",
		"one character": token("sk", "_live_") + strings.Repeat("x", 24) + " token=" +
			strings.Repeat("a", 40),
		"a UUID of zeros":           "API_KEY=00000000-0000-0000-0000-000000000000",
		"algorithms":                `password: "AES_256_CBC_HMAC_SHA_256", password: "CAMELLIA-256-CBC"`,
		"a port and a handle":       "http://localhost:3000/@vite/client and https://example.com:443/@user/post",
		"columns of something else": "id,token_count,next_page_token\n1,4096,CAUQAA12\n",
		"a table about passwords":   "| rule | password |\n|---|---|\n| length | at least 8 |\n",
		"a digest near a word": "the token's sha256 is " +
			"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"a public certificate": "-----BEGIN CERTIFICATE-----\n" + long + long[:30] +
			"+/\n-----END CERTIFICATE-----\n",
		"references to the outside": "password: ${DB_PASSWORD}\ntoken: {{ .Values.token }}\n" +
			"secret: process.env.SECRET\n",
		"a kubernetes reference": `{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db",` +
			`"key":"password"}}}`,
		"a name and its number": `"encryptionKey": "encryptionKey1024", private_key: "_DSAPrivateKey", ` +
			`SIGNATURE_HMAC_SHA1 = "HMAC-SHA1"`,
		"calls with numbers":        "s.ReadUint24LengthPrefixed(&extra) || !s.ReadUint16LengthPrefixed(&x)",
		"a product":                 "tokens = 2*maxCompilerConcurrency + minTokens",
		"labels of other languages": `{"secret":"Geheimnis","api_key":"API-Schlüssel","token":"Jeton d'accès"}`,
		"lines of an environment":   `PASSWORD_FILE=/run/secrets/db_password\nSECRET_NAME=prod/db/main1\nX=1`,
		"types in escapes":          `pub password: Option\u003cString\u003e, pub token: Secret\u003cString\u003e`,
		"a struct of Go": "\tPassword string\n\tToken    *oauth2.Token\n\tSecret   Secret256\n\tToken    " +
			"sha256Sum1\n\tmasterSecret  *tls13.MasterSecret\n",
		"columns of a database": "password\tvarchar(255)\tYES\ntoken\tchar64\tNO\nsecret        " +
			"base64string2\nsession_key     bytes32\n",
		"blocks without a secret": "password: |\n  Your password has to have 8 characters.\ntoken: |\n  {{ " +
			".Values.token }}\npassword: !vault |\n  x\n",
		"commands without one": "mysql -u root -p mydb\nmysql -p\"$PW\"\ndocker login -u user -p " +
			"PASSWORD\nredis-cli -a $PASS\nuser:password@tcp(localhost:3306)/db\n",
		"objects without one": `{"password":{"value":{"type":"string"}},"token":{"value":"string"},` +
			`"secret":{"S":"required"}}`,
		"references of HTML": `&lt;input type=&quot;password&quot; value=&quot;&quot;&gt; ` +
			`{&#34;password&#34;:{&#34;type&#34;:&#34;string&#34;}}`,
		"a link with two addresses": "see https://a.example.com:8443 and mailto:x@example.com",
	} {
		t.Run(name, func(t *testing.T) {
			if got, found := redact.New().Bytes([]byte(text)); len(found) > 0 {
				t.Errorf("%.300q became %.300q", text, got)
			}
			if !json.Valid([]byte(text)) {
				return
			}
			if got, found, err := redact.New().JSON([]byte(text)); err != nil || len(found) > 0 {
				t.Errorf("as JSON %.300s became %.300s, %v", text, got, err)
			}
		})
	}
}

// Nothing but the secret is removed: no line, no next word, no half of an escape. JSON stays JSON.
func TestNothingElseGoesAlong(t *testing.T) {
	gh := token("gh", "p_", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx")
	for text, want := range map[string]string{
		`{"a":"x\n` + gh + `\ny"}`:          `{"a":"x\n[redacted:github-token]\ny"}`,
		`'ann\nbob@corp.io\ncarl'`:          `'ann\n[redacted:email]\ncarl'`,
		`\x1b[31mbob@corp.io\x1b[0m`:        `\x1b[31m[redacted:email]\x1b[0m`,
		`curl -u admin:hunter2x\nnext line`: `curl -u admin:[redacted:password]\nnext line`,
		"password=hunter22x9\nnext":         "password=[redacted:password]\nnext",
		`machine x.io login bob password hunter22\nnext`: `machine x.io login bob password ` +
			`[redacted:password]\nnext`,
		"user,password,n\nbob,hunter22x,7\nann,tr0ub4dor,8\n": "user,password,n\nbob,[redacted:password],7\n" +
			"ann,[redacted:password],8\n",
		"password: \"hunter22x\"\nuser: bob\n":   "password: \"[redacted:password]\"\nuser: bob\n",
		`call \n4111 1111 1111 1111\nnow`:        `call \n[redacted:card]\nnow`,
		"a b+" + url.QueryEscape("x="+gh+"&y=1"): "a b+x%3D[redacted:github-token]%26y%3D1",
		"the password is hunter22x9. Then":       "the password is [redacted:password]. Then",
	} {
		if got, _ := redact.New().Bytes([]byte(text)); string(got) != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	page := strings.Repeat(`{"id":17,"name":"item"},`, 1000) + `"` + gh + `"`
	got, _ := redact.New().Bytes([]byte(b64("[" + page + "]")))
	if plain := decoded(string(got)); !json.Valid([]byte(plain)) ||
		!strings.Contains(plain, "[redacted:github-token]") || len(plain) < len(page)-20 {
		t.Errorf("base64 of JSON no longer decodes to it: %.100q", plain)
	}
}

func TestDeepJSON(t *testing.T) {
	for _, deep := range []string{strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)} {
		if _, _, err := redact.New().JSON([]byte(deep)); !errors.Is(err, canon.ErrDeep) {
			t.Errorf("got %v, want canon.ErrDeep", err)
		}
		if got, _ := redact.New().Bytes([]byte(deep)); len(got) != len(deep) {
			t.Error("as a text it was changed")
		}
	}
}
