package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// drawn returns n random-looking letters and digits.
func drawn(n int) string {
	const cycle = "q7Rv2ZxK9mTb4LwN8sYd3HfJ6pGc5XtV1aQ"
	return strings.Repeat(cycle, n/len(cycle)+1)[:n]
}

func hexadecimals(n int) string {
	return strings.Repeat("8f14e45fceea167a5a36dedd4bea2543", n/32+1)[:n]
}

// A value that resembles a vendor's token but cannot be one is left under a name that only contains
// the vendor's name. Under a name that indicates a secret it is removed in any form (issue 23:
// DATABRICKS_TOKEN=dapi with 30 digits was left).
func TestMisshapenTokens(t *testing.T) {
	for _, c := range []struct {
		name, value string
		isToken     bool
	}{
		{"telegram_bot", "123456789:AA" + drawn(33), true},
		{"telegram_bot", "1779:AA" + drawn(33), false},
		{"telegram_bot", "17791850604129841:AA" + drawn(33), false},
		{"telegram_bot", "123456789:AA" + drawn(30), false},
		{"telegram_api_token", "123456789:AA" + drawn(30), true},
		{"telegram_api_token", "123456789:AA" + drawn(38), true},
		{"slack_bot", "xoxb-123456789012-1234567890123-" + drawn(24), true},
		{"slack_bot", "xoxb-" + drawn(30) + "-####", false},
		{"slack_token", "xoxb-" + drawn(30) + "-q8Z", true},
		{"CLOUDFLARE_ORIGIN_CA", "v1.0-" + hexadecimals(24) + "-" + hexadecimals(146), true},
		{"CLOUDFLARE_ORIGIN_CA", "v1.0-" + hexadecimals(24) + "-" + hexadecimals(145), false},
		{"CLOUDFLARE_ORIGIN_CA", "v1.0-" + hexadecimals(20) + "-" + hexadecimals(146), false},
		{"CLOUDFLARE_API_KEY", "v1.0-" + hexadecimals(20) + "-" + hexadecimals(146), true},
		{"DATABRICKS_TOKEN", "dapi" + hexadecimals(32), true},
		{"DATABRICKS_TOKEN", "dapi" + hexadecimals(30), true},
		{"DATABRICKS_TOKEN", "dapi" + hexadecimals(31) + "z", true},
	} {
		for _, form := range []string{"%s=%s", `%s = "%s"`, `"%s": "%s"`, "%s: '%s'"} {
			text := fmt.Sprintf(form, c.name, c.value)
			cleaned, _ := redact.New().Bytes([]byte(text))
			if gone := !strings.Contains(string(cleaned), c.value); gone != c.isToken {
				t.Errorf("%s: got %s, want it removed: %t", text, cleaned, c.isToken)
			}
		}
	}
}

// Code that joins a connection string from variables, and the port of a host whose name resembles that of a secret, are
// not secrets (issue 23: the negatives of SonarSource).
func TestJoinedStringsAndPorts(t *testing.T) {
	texts := []string{"https://secret-store.example.net:443/api/Triggers_7/invoke?api-version=2022-05-01",
		"https://token.example.net:8443/?x=1", "wss://password-service.example.com:9000/a8Kq/Zx2mV7pL"}
	for _, operator := range []string{".", "+", "&", "~", "..", "||", "<>"} {
		for _, name := range []string{"PWD", "password", "Secret"} {
			for _, variable := range []string{"$config['password']", "v_value", "this->getPassword()", ":secret"} {
				for _, gap := range []string{" ", "      "} {
					texts = append(texts, fmt.Sprintf("';UID=' . u . ';%s='%s%s %s%s';'", name, gap, operator, variable,
						" "+operator+" "))
				}
			}
		}
	}
	for _, text := range texts {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text {
			t.Errorf("%s: got %s", text, cleaned)
		}
	}
	for _, text := range []string{"https://ann:8443x7Kq@example.net/",
		"';PWD=x#9Kq>2mV(7pLz!4;'", "PWD='+ x#9Kq>2mV(7pLz!4'"} {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) == text {
			t.Errorf("%s: it is left", text)
		}
	}
}

// One repeated character is not a token, with any prefix.
func TestRepetitiveTokens(t *testing.T) {
	for _, prefix := range []string{"sntryu_", "glc_", "sgp_", "ntn_", "rubygems_"} {
		for _, c := range []string{"a", "1", "F"} {
			text := prefix + strings.Repeat(c, 64)
			if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text {
				t.Errorf("%s: got %s, want it to stay", text, cleaned)
			}
		}
	}
}

// Someone who makes up a token types letters and digits in their order. Such a value is not a token unless
// it has exactly the format of a vendor.
func TestCountedTokens(t *testing.T) {
	const counted = "abc123xyz-456def789ghij-klmnopqrstuvwx-3456yza789bcde-1234fghijklmnop"
	for text, isToken := range map[string]bool{
		"sk-ant-api03-" + counted + "AA":                              false,
		"sk-ant-api03-" + counted + "by56aaaogaopaaaabc123xyzBB":      false,
		"sk-ant-api03-" + counted + "by56aaaogaopaaaabc123xyzAA":      true,
		"sk-ant-api03-" + drawn(60) + "AA":                            true,
		"ntn_" + strings.Repeat("1234567890", 6):                      false,
		"ntn_" + drawn(60):                                            true,
		`api_token = "abc123def456ghi789jkl012"`:                      false,
		`api_token = "` + drawn(24) + `"`:                             true,
		"DB_PASSWORD=abcdef123456":                                    true,
		"npm_a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8":                    true,
		"disk-test: sk_test_" + drawn(24) + ", xsk_test_" + drawn(24): true,
	} {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text != isToken {
			t.Errorf("%s: got %s, want it removed: %t", text, cleaned, isToken)
		}
	}
}

// A vendor's name counts if it is a word, and not within another word.
func TestVendorNamesAreWords(t *testing.T) {
	for name, isVendor := range map[string]bool{
		"meraki": true, "my_meraki": true, "myMeraki": true, "MERAKI": true, "etsyAccess": true,
		"ReactNativeCameraKit": false, "SetSysctl": false, "rookTable": false,
	} {
		text := fmt.Sprintf("%s: %q", name, hexadecimals(40))
		cleaned, _ := redact.New().Bytes([]byte(text))
		if got := string(cleaned) != text; got != isVendor {
			t.Errorf("%s: got %s, want it removed: %t", text, cleaned, isVendor)
		}
	}
}

// Names of algorithms, encrypted values, words with numbers and shell variables are not passwords
// or secrets.
func TestWhatIsNoSecret(t *testing.T) {
	for _, text := range []string{
		`password: "AESWrap_256"`, `password: "ARIA_192_GCM"`, `password: "SM4-CTR"`,
		`password: "RSA/ECB/OAEPWithSHA-256AndMGF1Padding"`, `password: "PBEWithHmacSHA256AndAES_256"`,
		`password: "U2FsdGVkX19hbG90b2ZjaXBoZXJ0ZXh0"`, `secret = "vault:v1:AbCdEfGhIjKlMnOpQrStUvWxYz012345"`,
		"keyVaultToStoreSecrets: cmp2-qat-1208358310", `curl --user "xxx:yyy" https://host.test`,
		`curl -u "${USER:-${DEFAULT_USER}}:${APIKEY:-${DEFAULT_APIKEY}}"`,
		`password = password.encode("latin1")`, `password = ":****"`, `fds_to_pass = [listener.fileno(), alive_r]`,
		`MovedAttribute("HTTPPasswordMgrWithDefaultRealm", "urllib2", "urllib.request")`,
		`return f'machine {host} login {self.username} password {self.password}'`, `creds = " --username=" + auth`,
		"private_key: PKCS7PrivateKeyTypes,", "private_key: Ed25519PrivateKey | Ed448PrivateKey",
		`_TOKEN: Final[str] = rf"[{_TCHAR}]+"`, `telegram_api_token = "clm58724:AgencyIdentificationCodeContentType"`,
		`"token": "xoxp-572370529330-573807301142-572331691188-####################"`,
		`"AWS::IAM::AccessKey": "23f995735d09bdb9",`, `"AWS::SecretsManager::Secret": "150ef5b439192da2"`,
		`Token.OutPrompt: '#ansired', Token.Number: '#3f7'`,
		"h1:hSWxHoqTgW2S2qGc0LTAI563KZ5YKYRhT3MFKZMbjag=\ngithub.com/go-logr/stdr v1.2.2/go.mod",
		"clientId: hSWxHoqTgW2S2qGc0Lq7I563KZ5YKYRhT3MFKZMbjag=\nnext: word",
		"access_token=2YotnFZFEjr1zCsicMWpAA", // RFC 6749, section 4.2.2
		`nonMatching := "task_test_` + drawn(30) + `"`, `network_live_` + drawn(30), "disk_test_" + drawn(24),
	} {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text {
			t.Errorf("%s: got %s, want it to stay", text, cleaned)
		}
	}
}

// A YAML password without quotes may be a plain word if the lines are YAML. In code, the same word
// is a name.
func TestPlainWordsInYAML(t *testing.T) {
	for text, want := range map[string]string{
		"user: bob\npassword: root\n": "user: bob\npassword: [redacted:password]\n",
		"master_auth:\n  password: root\nnode_config:\n": "master_auth:\n  password: " +
			"[redacted:password]\nnode_config:\n",
		"A:\r\n  B: x\r\n  MasterUserPassword: root\r\n  C: d\r\n": "A:\r\n  B: x\r\n  MasterUserPassword: " +
			"[redacted:password]\r\n  C: d\r\n",
		"int32 db_password = 12342134":                  "int32 db_password = [redacted:password]",
		"f({\n  user: user,\n  password: pass\n})":      "f({\n  user: user,\n  password: pass\n})",
		"interface A {\n  password: string\n}":          "interface A {\n  password: string\n}",
		"user: bob\npassword: required\n":               "user: bob\npassword: required\n",
		"Please note.\nYour password: needs changing\n": "Please note.\nYour password: needs changing\n",
	} {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != want {
			t.Errorf("%q: got %q, want %q", text, cleaned, want)
		}
	}
}

// Values that only resemble a placeholder or a range of a regular expression are removed.
func TestDrawnValuesThatBeginOddly(t *testing.T) {
	for _, value := range []string{"a_l1cvw9dnlxx6u2u5xqq5wo1i7pqrhbb3j56cd9",
		"tgr0-zrjefrm3oomnv0pgv7xbvvzyyw770ylr8i"} {
		text := "cloudflare_token: \"" + value + "\""
		if cleaned, _ := redact.New().Bytes([]byte(text)); strings.Contains(string(cleaned), value) {
			t.Errorf("%s: got %s", text, cleaned)
		}
	}
	for _, value := range []string{"a_secret_token_1", "[a-zA-Z0-9]{20}", "[A-F0-9]+Q7x", "a-zA-Z0-9_Q7"} {
		text := "cloudflare_token: \"" + value + "\""
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text {
			t.Errorf("%s: got %s, want it to stay", text, cleaned)
		}
	}
}

// The arguments of calls that make a value, and the members of the next object, are not its value (issue 23).
func TestArgumentsAndNextMembers(t *testing.T) {
	for _, text := range []string{
		`password = cfg.get("db", "password")`, `token = request.headers.get("X-Auth-Token-V2")`,
		`password = getpass.getpass("Enter the password of db2: ")`, `secret = hashlib.sha256("abc").hexdigest()`,
		`password = try(each.value.admin_password, "none", null)`, "password = Foo.decode(\n    value)\n",
		"Parameters:\n  Password:\n    Type: String\n  User:\n    Type: String\n    Default: mzpamt66\n",
		"properties:\n  password:\n    encoded: false\n  user:\n    value: mzpamt66\n",
		"The token is `refresh_token_v2` in this version.",
	} {
		if cleaned, _ := redact.New().Bytes([]byte(text)); string(cleaned) != text {
			t.Errorf("%s: got %s", text, cleaned)
		}
	}
}
