package redact_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// settings are texts around a value. They must not be changed.
var settings = map[string][2]string{ // the text before it and after it
	"a line of its own":         {"first\n", "\nnext line"},
	"a line of Windows":         {"first\r\n", "\r\nnext line"},
	"an escaped line":           {`first\n`, `\nnext line`},
	"a line that was escaped":   {`first\\n`, `\\nnext line`},
	"between tabs":              {"a\t", "\tb"},
	"between escaped tabs":      {`a\t`, `\tb`},
	"a sentence":                {"it is ", " and more"},
	"a quoted word":             {`say "`, `" and more`},
	"a text in JSON":            {`{"a":"`, `","b":1}`},
	"a text with an escape":     {`{"a":"x\n`, `\ny","b":[1,2]}`},
	"JSON in JSON":              {`{"a":"{\"b\":\"`, `\",\"c\":2}"}`},
	"a colour":                  {"\x1b[31m", "\x1b[0m then"},
	"an escaped colour":         {`\x1b[31m`, `\x1b[0m then`},
	"a reference of HTML":       {"<b>", "</b>&nbsp;then"},
	"quotes of HTML":            {"&quot;", "&quot; then"},
	"a list of Python":          {"['a', '", "', 'b']"},
	"a repr with a line":        {`'first\n`, `\nlast'`},
	"a cell":                    {"1,ann,", ",7\n2,bob,x,8\n"},
	"a cell of a table":         {"| 1 | ", " | x |\n| 2 | y | z |"},
	"an attribute":              {`<a b="`, `" c="d">`},
	"a part of a path":          {"/srv/", "/b/c.txt"},
	"a line of a here document": {"cat <<EOF\n", "\nEOF\nls"},
	"a line with a prompt":      {"$ echo ", "\n$ ls"},
}

// The text before and after a token of any kind does not change in any setting, and JSON stays
// JSON.
func TestWhatStandsAroundStays(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 13))
	r := redact.New()
	for _, format := range formats {
		value := sample(rng, format.parts)
		for name, around := range settings {
			if name == "a part of a path" && (format.kind == "aws-bedrock-key" || format.kind == "elastic-cloud-key") {
				continue // their alphabet contains the slash
			}
			text := around[0] + value + around[1]
			got, _ := r.Bytes([]byte(text))
			shown := string(got)
			if !strings.HasPrefix(shown, around[0]) || !strings.HasSuffix(shown, around[1]) {
				t.Errorf("%s in %s: %q became %q", format.kind, name, text, shown)
			}
			if json.Valid([]byte(text)) {
				if !json.Valid(got) {
					t.Errorf("%s in %s is no JSON any more: %s", format.kind, name, shown)
				}
				if clean, _, err := r.JSON([]byte(text)); err != nil || !json.Valid(clean) ||
					strings.Contains(string(clean), value) {
					t.Errorf("%s in %s as JSON: %s, %v", format.kind, name, clean, err)
				}
			}
		}
	}
}

// Named values in the same settings.
func TestNamedValuesLeaveWhatStandsAround(t *testing.T) {
	r := redact.New()
	for _, name := range []string{"password=%s", "API_KEY=%s", "token: %s", "Authorization: Bearer %s",
		"https://u:%s@db.corp.io/x"} {
		for which, around := range settings {
			if which == "a part of a path" || strings.Contains(which, "HTML") && strings.Contains(name, "://") {
				continue // a value without quotes extends to the next space
			}
			text := around[0] + fmt.Sprintf(name, "q8Zr2Lk0vXw93TbNc") + around[1]
			got, _ := r.Bytes([]byte(text))
			if shown := string(got); strings.Contains(shown, "q8Zr2Lk0vXw93TbNc") ||
				!strings.HasPrefix(shown, around[0]) || !strings.HasSuffix(shown, around[1]) {
				t.Errorf("%s in %s: %q became %q", name, which, text, shown)
			}
		}
	}
}

// oneOnly are kinds of which two tokens in a row are not found: they do not begin with a fixed
// word, or it also occurs in ordinary words.
var oneOnly = []string{"airtable-token", "azure-client-secret", "discord-token", "mailchimp-key", "telegram-token",
	"terraform-token", "vault-token"}

// Two tokens in a row without a separator.
func TestTokensThatAreStuckTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 34))
	gh := token("gh", "p_", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx")
	for _, format := range formats {
		value := sample(rng, format.parts)
		for how, text := range map[string]string{"behind another": gh + value, "before another": value + gh,
			"twice": value + value} {
			if how == "twice" && slices.Contains(oneOnly, format.kind) {
				continue
			}
			got, _ := redact.New().Bytes([]byte("log " + text + " end"))
			if shown := string(got); strings.Contains(shown, gh) || strings.Contains(shown, value) ||
				!strings.HasSuffix(shown, " end") {
				t.Errorf("%s %s: %s", format.kind, how, shown)
			}
		}
	}
}

// Ordinary data in encodings that are decoded is left.
func TestOrdinaryDataStaysInEncodings(t *testing.T) {
	row := `{"id":"123e4567-e89b-12d3-a456-426614174000","name":"Ann",` +
		`"sum":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b","n":1700000000123}`
	for name, text := range map[string]string{
		"base64":           b64(row),
		"base64 of gzip":   encodings["base64 of gzip"](row),
		"base64 of UTF-16": encodings["base64 of UTF-16"](row),
		"hex":              encodings["hex"](row),
		"an address":       url.QueryEscape(row),
		"quoted-printable": encodings["quoted-printable"](row),
		"JSON":             asJSON(row),
		"a data address": `<img src="data:image/png;base64,` +
			`iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==">`,
		"a path of SVG": `<path d="M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10S17.52 2 12 2zm0 18c-4.41 ` +
			`0-8-3.59-8-8s3.59-8 8-8 8 3.59 8 8-3.59 8-8 8z"/>`,
		"minified": `!function(e,t){"object"==typeof exports?module.exports=t():e.Foo=t()}(this,function(){var ` +
			`a=1e3,b=0xff,c=a*b;return{k:c,token:function(e){return e.next}}});`,
		"a lock file": `"node_modules/a": {"version": "1.2.3", "resolved": "https://r.example/a/-/a-1.2.3.tgz", ` +
			`"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+` +
			`LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="}`,
		"GraphQL": "type Mutation { login(email: String!, password: String!): Token! resetPassword(token: " +
			"ID!, newPassword: String!): Boolean }",
		"SQL": "CREATE TABLE users (id uuid PRIMARY KEY, password varchar(255) NOT NULL, api_token " +
			"char(40), secret text DEFAULT NULL);",
		"i18n": `{"password.label":"Password","password.hint":"At least 8 characters",` +
			`"login.forgotPassword":"Forgot your password?","token":{"expired":"Your token has expired"}}`,
		"pairs of types": `[["password","string"],["token","string"],["api_key","varchar(40)"]]`,
		"a form": `<label for="password">Password</label><input type="password" name="password" ` +
			`id="password" autocomplete="current-password">`,
	} {
		if got, found := redact.New().Bytes([]byte(text)); len(found) > 0 {
			t.Errorf("%s: %.300s became %.300s", name, text, got)
		}
		if json.Valid([]byte(text)) {
			if got, found, err := redact.New().JSON([]byte(text)); err != nil || len(found) > 0 {
				t.Errorf("%s as JSON: %.300s became %.300s, %v", name, text, got, err)
			}
		}
	}
}
