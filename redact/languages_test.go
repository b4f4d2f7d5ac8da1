package redact_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// The ways in which languages and files give a value to a name, other than plain assignments.
func TestWaysToGiveAValue(t *testing.T) {
	for name, test := range map[string][2]string{
		"a setter": {`conn.setPassword("h0rse21x")`, `conn.setPassword("[redacted:password]")`},
		"a builder": {`Client.builder().password("h0rse21x").build()`,
			`Client.builder().password("[redacted:password]").build()`},
		"a setter of a token": {`join.setJoinToken("q8Zr2Lk0vXw93TbNc")`,
			`join.setJoinToken("[redacted:secret]")`},
		"a property of Java": {`mvn -Dsonar.login=9acf34ff1e738bcd6d5daf102a8cfcb8a158e44e x`,
			`mvn -Dsonar.login=[redacted:secret] x`},
		"setx with two quotes": {`setx "API_TOKEN" "q8Zr2Lk0vXw93TbNc"`,
			`setx "API_TOKEN" "[redacted:secret]"`},
		"a default that has a name": {`env("SECRET_KEY", default="q8Zr2Lk0vXw93TbNc")`,
			`env("SECRET_KEY", default="[redacted:secret]")`},
		"a variable of Terraform": {"variable \"db_password\" {\n  type    = string\n  default = \"h0rse21x\"\n}",
			"variable \"db_password\" {\n  type    = string\n  default = \"[redacted:password]\"\n}"},
		"a parameter of a template": {"  DBPassword:\n    Type: String\n    Default: \"h0rse21x\"\n",
			"  DBPassword:\n    Type: String\n    Default: \"[redacted:password]\"\n"},
		"a default of a shell": {`x: postgres://u:${DB_PASSWORD:-hunter22}@db`,
			`x: postgres://u:${DB_PASSWORD:-[redacted:password]}@db`},
		"a flag": {`mongo --username root --password h0rse21x`,
			`mongo --username root --password [redacted:password]`},
		"a key beside its id": {token("AK", "IA", "IOSFODNN7ABCDPQE") + ":" +
			token("wJalrXUtnFEMI/K7MDENG", "/bPxRfiCYabcd123456"),
			token("[redacted:aws-access-key]", ":[redacted:aws-secret-key]")},
		"a short cookie of a session": {"Cookie: sid=x7k2p9\r\n", "Cookie: [redacted:cookie]\r\n"},
		"arguments in a list": {`['--password', 'h0rse21x', '-v']`,
			`['--password', '[redacted:password]', '-v']`},
		"a cookie of a HAR": {`{"name":"Cookie","value":"session=q8Zr2Lk0vXw93TbNc"}`,
			`{"name":"Cookie","value":"[redacted:cookie]"}`},
		"ldapsearch": {"ldapsearch -D cn=bob -w h0rse21x -H ldap://a",
			"ldapsearch -D cn=bob -w [redacted:password] -H ldap://a"},
		".netrc's default": {"default login bob password h0rse21x\n",
			"default login bob password [redacted:password]\n"},
		".pgpass for all":              {"*:*:*:bob:h0rse21x\n", "*:*:*:bob:[redacted:password]\n"},
		"a property that ends in pass": {"db.pass=h0rse21xQz\n", "db.pass=[redacted:password]\n"},
		"SecretStr alone":              {`x = SecretStr('h0rse21x')`, `x = SecretStr('[redacted:password]')`},
		"SMTP's AUTH PLAIN":            {"AUTH PLAIN AGJvYgBoMHJzZTIxeFF6", "AUTH PLAIN [redacted:authorization]"},
		"MySQL's function": {"SET PASSWORD FOR bob = PASSWORD('h0rse21x');",
			"SET PASSWORD FOR bob = PASSWORD('[redacted:password]');"},
		"a key of a network": {`psk="h0rse21x"`, `psk="[redacted:password]"`},
		"Spring's XML": {`<property name="password"><value>h0rse21xQz</value></property>`,
			`<property name="password"><value>[redacted:password]</value></property>`},
		"Spanish":              {`contraseña = "h0rse21x"`, `contraseña = "[redacted:password]"`},
		"German":               {"Passwort: h0rse21xY!\n", "Passwort: [redacted:password]\n"},
		"a sentence in German": {"Das Passwort ist h0rse21x.", "Das Passwort ist [redacted:password]."},
		"French":               {`"mot_de_passe": "h0rse21x"`, `"mot_de_passe": "[redacted:password]"`},
		"a sentence in French": {"Le mot de passe est h0rse21x.", "Le mot de passe est [redacted:password]."},
		"Portuguese":           {"senha=h0rse21xY!", "senha=[redacted:password]"},
		"Dutch":                {`wachtwoord: 'h0rse21x'`, `wachtwoord: '[redacted:password]'`},
		"Russian":              {`"пароль": "h0rse21x"`, `"пароль": "[redacted:password]"`},
		"Chinese":              {`密码: "h0rse21x"`, `密码: "[redacted:password]"`},
		"Japanese":             {`パスワード = "h0rse21x"`, `パスワード = "[redacted:password]"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := redact.New().Bytes([]byte(test[0])); string(got) != test[1] {
				t.Errorf("%q became %q, want %q", test[0], got, test[1])
			}
		})
	}
}

func TestNamesOfOtherLanguagesInJSON(t *testing.T) {
	for _, name := range []string{"contraseña", "passwort", "senha", "mot_de_passe", `contrase\u00f1a`, "пароль", "密码",
		`\u5bc6\u7801`} {
		got, found, err := redact.New().JSON([]byte(`{"` + name + `":"h0rse21x"}`))
		if err != nil || len(found) == 0 {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	for _, text := range []string{`["run","--password","h0rse21x"]`, `{"cookie":"sid=q8Zr2Lk0vXw93TbNc"}`,
		`{"headers":[{"name":"Cookie","value":"sid=q8Zr2Lk0vXw93TbNc"}]}`} {
		if got, found, err := redact.New().JSON([]byte(text)); err != nil || len(found) == 0 {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	got, found, err := redact.New().JSON([]byte(`{"DBPassword":{"Type":"String","Default":"h0rse21x"}}`))
	if err != nil || len(found) == 0 {
		t.Errorf("a default: got %s, %v", got, err)
	}
}

// The same forms without a secret.
func TestWaysToGiveNoValue(t *testing.T) {
	for _, text := range []string{
		`user.setPassword("password")`, `form.password("Enter your password")`, `cy.get('#p').type("secret")`,
		`validateToken("abc")`, `getPassword("user1")`,
		`variable "db_password" { type = string }`, "DBPassword:\n  Type: String\n  NoEcho: true\n", `${DB_PASSWORD:-}`,
		`${TOKEN:-$OTHER_TOKEN}`, `${PASSWORD:-changeme}`,
		`{"senha":"Senha","contraseña":"Contraseña","Passwort":"Passwort"}`,
		"Bitte geben Sie das Passwort ein: es fehlt.", "Le mot de passe est obligatoire.",
		`api_key = "abcdef1234567890abcdef"`, `csrf_token = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6"`,
		`secret: 11111111-2222-3333-4444-555555555555`,
		`{"password":{"type":"string","default":""}}`, `Cookie: theme=dark1; sidebar=open2`,
		`redis://:redis-password-goes-here@host/0`,
		`alg: "PBES2-HS256+A128KW"`, `video_box.ico-7a388b69018576d24b59331fd60aab0c.png`,
	} {
		if got, found := redact.New().Bytes([]byte(text)); len(found) > 0 {
			t.Errorf("%s became %s", text, got)
		}
	}
}
