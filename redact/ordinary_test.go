package redact_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// ordinaryRecords are tables, logs, definitions and statements with words such as token, key, secret and password
// beside values that are not secrets: counts, identifiers, digests, fingerprints, public keys, names and versions.
var ordinaryRecords = []string{
	"The type of the token as described in `Section 7.1`_ of the key.\n:type passphrase: :py:data:`bytes`\n",
	"    age --passphrase [--armor] [-o OUTPUT]\n", "if len(x) == 0 && f.pass.name == \"schedule-2\" {\n",
	`["password", "administrator-login"]`, "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbC123\n",
	`{"model":"m1","usage":{"prompt_tokens":1234567,"completion_tokens":98765432,"total_tokens":12345678901}}`,
	`[["user","token_count"],["bob","1234567890123"],["ann","9876543210987"]]`,
	`[["table","primary key"],["users","user_id_2024_v2"],["orders","order_no_17b"]]`,
	`[["key","value"],["color","blue-7f3a9c2d41"],["sha","9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"]]`,
	`[["Key","Size","ETag"],["photos/2026/01/IMG_20260102_030405.jpg",12345,"\"9b2cf535f27731c974343645a3985328\""]]`,
	`{"columns":["table","key_column","foreign_key"],"rows":[["orders","customer_id_v2","fk_orders_customers_01"]]}`,
	`{"keys":[{"kid":"2026-01-key-1","kty":"RSA","use":"sig","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWh` +
		`M78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7` +
		`_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdk` +
		`t-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB"}]}`,
	"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Qp3wD1Yk2s0b3u5Xf7a9cE1gHk4LmNoPqRsTuVwXy bob@host\n",
	"256 SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8 github.com (ED25519)\nThe key fingerprint is SHA25" +
		"6:p2QAMXNIC1TJYWeIOttrVc98/R1BUFWu3/LiyKgUfQM.\n",
	"pub   rsa4096 2026-01-01 [SC]\n      9D4F3B1C0E2A5F6B7C8D9E0F1A2B3C4D5E6F7A8B\nuid   Bob <x>\nsub   rsa40" +
		"96/3AA5C34371567BD2 2026-01-01 [E]\nKey fingerprint = 9D4F 3B1C 0E2A 5F6B 7C8D  9E0F 1A2B 3C4D 5E6F 7A8B\n",
	"| Column | Type | Key | Token count |\n|---|---|---|---|\n| id | bigint | PRI | 120394857612 |\n| user_re" +
		"f | char(36) | MUL | 2f1c7a60-8d1e-4c7f-9a3e-0b1d2c3e4f50 |\n",
	"id,api_key_id,token_type,secret_name\n1,6f1ed002ab5595859014ebf0951522d9,bearer,prod/db/main-2024\n",
	"NAME                TYPE                                  DATA   AGE\ndefault-token-7xk2p kubernetes.io/s" +
		"ervice-account-token   3      41d\ndb-password-v2      Opaque                                1      12d\n",
	"NAME      SECRETS   AGE\ndefault   1         41d\nbuilder2  0         12d\n",
	"commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\n    Rotate the token of the deploy key\n    See secret" +
		"-rotation-2024-11\n",
	"4b825dc6 fix: password reset token expires after 15m\n9f86d081 feat: rotate secret keys v2\nb94d27b9 chor" +
		"e: api key docs\n",
	"sha256sum: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  token.txt\n",
	"secret.tar.gz: sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 OK\npassword.db  m" +
		"d5 d41d8cd98f00b204e9800998ecf8427e\n",
	`{"id":"7f3c9a52-1b7e-4c55-9f0e-3d2a1b4c5d6e","key_id":"7f3c9a52-1b7e-4c55-9f0e-3d2a1b4c5d6e","secret_vers` +
		`ion":"12","secret_arn":"arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbC123"}`,
	`{"event":"token_refreshed","request_id":"req_8fJk2Lm9QpRs","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736",` +
		`"span_id":"00f067aa0ba902b7","token_expires_in":3600}`,
	"trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7 msg=\"token refreshed\" key_count=12\n",
	"INFO secret rotated name=prod/db/main1 version=7f3c9a52-1b7e-4c55-9f0e-3d2a1b4c5d6e\n",
	"Public key: MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunV" +
		"TLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u\n",
	`{"publicKey":"MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=","fingerprint":"SHA256:p2QAMXN` +
		`IC1TJYWeIOttrVc98/R1BUFWu3/LiyKgUfQM"}`,
	"tokens: [101, 2023, 2003, 1037, 3231, 102]\ntoken ids 101 2023 2003 1037 3231 102\n",
	`{"tokens":["def","main","(",")","return","0x1F4A9","h4ck3r"],"token_types":["kw","id"]}`,
	`[["token","pos","lemma"],["Running2","VERB","run"],["U2's","PROPN","U2"],["B2B","NOUN","B2B"],["3rd-party` +
		`","ADJ","3rd-party"]]`,
	"token\tpos\tlemma\nRunning\tVERB\trun\ncovid-19\tNOUN\tcovid-19\nHello123World\tX\tX\n",
	"word,token,count\nfoo,tok1234567,3\nbar,sub_word_12,4\n",
	"Foreign key constraint fk_8f3a9c2d41b7 on table orders references users(id)\nunique key \"uk_6dotkott2kjs" +
		"p8vw4d0m25fb7\"\n",
	"alter table users add constraint UK_6dotkott2kjsp8vw4d0m25fb7 unique (email)\n",
	"ERROR: duplicate key value violates unique constraint \"users_pkey_2f1c7a60\"\nDETAIL: Key (id)=(8f14e45f" +
		"ceea167a) already exists.\n",
	"Redis keys:\nsession:count:2026-01-02\nuser:1234567:profile\ncache:v2:8f14e45fceea167a5a36dedd4bea2543\n",
	`{"Contents":[{"Key":"backups/2026-01-02/db-8f14e45fceea167a.sql.gz","Size":123}],"NextContinuationToken":` +
		`"1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="}`,
	`{"nextPageToken":"CAUQAA1b2c3d4e5f6g7h8","pageToken":"EAAaHlBUOkNBVVFBQTFiMmMzZDRlNWY2ZzdoOA"}`,
	`{"kind":"Secret","metadata":{"name":"db-password","uid":"2f1c7a60-8d1e-4c7f-9a3e-0b1d2c3e4f50","resourceV` +
		`ersion":"1234567"}}`,
	"kind: Secret\nmetadata:\n  name: db-password-v2\n  uid: 2f1c7a60-8d1e-4c7f-9a3e-0b1d2c3e4f50\ntype: Opaque\n",
	"password policy: minimum 12 characters, 1 upper, 1 digit\npassword last changed 2026-01-02T03:04:05Z by bob17\n",
	"user: bob1234567\nlast_password_change: 2026-01-02 03:04:05\npassword_expired: N\naccount_locked: N\n",
	"mysql> select user, plugin, password_last_changed from user;\n+------+-----------------------+-----------" +
		"------------+\n| user | plugin                | password_last_changed |\n+------+-----------------------+" +
		"-----------------------+\n| root | caching_sha2_password | 2026-01-02 03:04:05   |\n+------+-------------" +
		"----------+-----------------------+\n",
	"Secret scanning found 3 alerts in src/token_parser_v2.go:17 and internal/secret/key1_test.go:99\n",
	`{"alerts":[{"secret_type":"github_token","path":"src/token_parser_v2.go","line":17,"commit":"4b825dc642cb` +
		`6eb9a060e54bf8d69288fbee4904"}]}`,
	"Token usage: 12,345 prompt + 6,789 completion = 19,134 (cost $0.1234)\n",
	"max_token_length=4096 token_budget=128000 password_attempts=3 secret_len=32\n",
	"key               value\nhash_algorithm    sha256\nkey_size          4096bits\nkey_serial        8f14e45f" +
		"ceea167a\n",
	"Keyboard: key 29 (left ctrl) pressed; keycode=113 keysym=0xff51 scancode=e04b\n",
	`{"hotkeys":{"save":"ctrl+shift+s","find":"ctrl+f2"},"keybinding":"cmd+k1 cmd+s2"}`,
	"partition_key=customer#8f14e45f sort_key=order#2026-01-02#17\n",
	`{"Key":{"pk":{"S":"CUSTOMER#8f14e45fceea167a"},"sk":{"S":"ORDER#20260102#0017"}}}`,
	`{"idempotency_key":"7f3c9a52-1b7e-4c55-9f0e-3d2a1b4c5d6e","cache_key":"v2:8f14e45fceea167a5a36dedd4bea2543"}`,
	"apiVersion: v1\ndata:\n  tls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM=\n",
	"Certificate fingerprint (SHA-256): 5A:3B:9C:1D:7E:2F:8A:4B:6C:0D:1E:2F:3A:4B:5C:6D:7E:8F:9A:0B:1C:2D:3E:4" +
		"F:5A:6B:7C:8D:9E:0F:1A:2B\nSubject Key Identifier: 4F:8A:2C:9E:11:0B:7D:33:5A:6E:90:C1:D2:E3:F4:05:16:27:" +
		"38:49\n",
	"X509v3 Authority Key Identifier: \n    keyid:A8:4A:8D:7B:3F:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\n",
	"Public-Key: (2048 bit)\nModulus:\n    00:c3:5f:11:2e:9a:44:71:08:bd:6e:f2:90:17:\n    5d:aa:31:4c:e8\n",
	"passing: 120 tests, passed 119, pass rate 99.2%, compass_heading=271.5, bypass=cache1\n",
	"pass: 17\nfail: 2\nskip: 1\npass=true\npass_rate: 0.98\nboarding pass: gate B22\n",
	`{"pass":true,"pass_count":17,"first_pass":"ok","second_pass":"retry-2"}`,
	"PASS: TestTokenRotation (0.12s)\n--- PASS: TestSecretKeyV2/aes256 (0.00s)\n" +
		"ok  	example.com/secret/v2	0.123s\n",
	"author: Ann Smith\nauthority: registry.example.com:5000/v2\nauthentication: oauth2\n",
	"secretary: bob1\ntokenizer: cl100k_base\ntokenize: gpt2-medium-v2\nkeynote: 2026-01-02 hall4\nmonkey: ban" +
		"ana42\nturkey=tr-2026-ank\n",
	"<table><tr><th>Token</th><th>Meaning</th></tr><tr><td>if1</td><td>keyword</td></tr><tr><td>NUM_42</td><td" +
		">number</td></tr></table>\n",
	"<tr><th>Password</th><th>Strength</th></tr><tr><td>required</td><td>strong</td></tr>\n",
	"The token “bearer” is described in RFC 6750; the key — a noun — is “primary”.\npassword — required, 12 to" +
		" 64 characters\n",
	"key → value, token → id, secret → name\nsecret — see docs/secrets-v2.md\n",
	"password: “at least 8”\ntoken: «jeton»\n",
	"Credentials: bob / admin group\ncredentials: see /etc/app/credentials.d/10-main.conf\n",
	"login: bob17 / 2026-01-02 03:04:05\n",
	"-----BEGIN CERTIFICATE REQUEST-----\nMIICijCCAXICAQAwRTELMAkGA1UEBhMCQVUxEzARBgNVBAgMClNvbWUtU3RhdGUx\nIT" +
		"AfBgNVBAoMGEludGVybmV0IFdpZGdpdHMgUHR5IEx0ZDCCASIwDQYJKoZIhvcN\n-----END CERTIFICATE REQUEST-----\n",
	"id          | 1\nkey_name    | prod-main-2024-v2\ntoken_count | 123456789\nkey_hash    | 8f14e45fceea167a" +
		"5a36dedd4bea2543\n",
	"image: app:secret-rotation-1.2.3-g8f14e45\nimagePullSecrets:\n- name: regcred-v2\n",
	"secretName: tls-wildcard-2026\nsecretKeyRef:\n  name: db-main-v2\n  key: password\ntokenSecretRef: vault-" +
		"approle-2\n",
	`{"secrets":{"db":{"arn":"arn:aws:x","created":"2026-01-02"}},"tokens":{"count":12,"limit":4096}}`,
	`{"token":{"0":"the","1":"cat","2":"sat"}}`,
	`{"token":["the","cat2","sat"],"count":[1,2,3]}`,
	`{"columns":["token","count"],"data":[["##ing",12],["covid19",4],["gpt4o",9]]}`,
	`{"schema":{"fields":[{"name":"id"},{"name":"key"}]},"rows":[{"f":[{"v":"1"},{"v":"order-2026-0017"}]}]}`,
	"SELECT key, token, secret FROM t WHERE key = 'order-2026-0017' AND token = 'covid19'\n",
	"CREATE TABLE t (id uuid PRIMARY KEY, token varchar(255), secret_hash char(64), api_key_id bigint);\n",
	"api_key_prefix: sk_live\ntoken_prefix: ghp\nkey_version: 2026-01-02.1\n",
	"WWW-Authenticate: Bearer realm=\"api\", error=\"invalid_token\", error_description=\"expired at 2026-01-02\"\n",
	"Authorization: Bearer <token>\nAuthorization: Basic ...\nX-Api-Key: $API_KEY\n",
	"etag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"\ncache-key: 33a64df551425fcc55e4d42a148795d9\n",
}

// Issue 23: data is not damaged by the words around it, as text and as JSON.
func TestOrdinaryRecordsStay(t *testing.T) {
	r := redact.New()
	for _, text := range ordinaryRecords {
		if got, found := r.Bytes([]byte(text)); secrets(found) > 0 {
			t.Errorf("%q became %q", text, got)
		}
		if got, found, err := r.JSON([]byte(text)); err == nil && secrets(found) > 0 {
			t.Errorf("as JSON, %s became %s", text, got)
		}
	}
}
