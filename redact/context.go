package redact

import (
	"bytes"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

func compile(expression string) *lazyregexp.Regexp { return lazyregexp.New(expression) }

// contextRules find values without a recognisable form, by the text before them.
func contextRules() []rule {
	return []rule{
		{kind: "private-key", anchors: []string{"-----begin"}, glued: true, after: 100, locate: keyBlock},
		{kind: "private-key", anchors: []string{"putty-user-key-file-"}, after: 20_000,
			re: compile(`(?i)\A(PuTTY-User-Key-File-\d: (?s:.*?)Private-Lines: ` +
				`\d+\s+(?:[A-Za-z0-9+/=]{1,80}\s+)+(?:Private-MAC: [0-9a-f]+)?)`)},
		{kind: "private-key", anchors: []string{"private-lines:"}, after: 20_000,
			re: compile(`(?i)\APrivate-Lines: \d+\r?\n((?:[A-Za-z0-9+/=]{20,80}\r?\n)+)`)},
		{kind: "jwt", anchors: []string{"eyj"}, after: 12_000,
			re: compile(`\A(eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{10,})`)},
		{kind: "jwt", anchors: []string{"eyj"}, after: 12_000,
			// JWE
			re: compile(`\A(eyJ[A-Za-z0-9_\-]{20,}\.[A-Za-z0-9_\-]*\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}` +
				`\.[A-Za-z0-9_\-]{10,})`)},
		{kind: "url-password", anchors: []string{"://"}, glued: true, after: 1000, locate: urlPassword},
		{kind: "authorization", anchors: []string{"authorization"}, glued: true,
			re: compile(`(?i)\Aauthorization["']?\s{0,3}(?:[:=,]|=>)\s{0,3}["']?(?:bearer|basic|token|apikey|bot|` +
				`digest)\s+["']?([A-Za-z0-9][A-Za-z0-9._~+/\-]{7,}={0,2})`), check: credential},
		{kind: "authorization", anchors: []string{"authorization"}, glued: true, line: true,
			re: compile(`(?i)\Aauthorization["']?\s{0,3}[:=]\s{0,3}["']?(?:bearer|token|apikey|bot)\s+([^\s"'` + "`" +
				`&,;<\\\x1b][^\s"'` + "`" + `&,;<\\\x1b]{11,200})`), check: isTyped}, // more than RFC 6750 allows
		{kind: "authorization", anchors: []string{"bearer "},
			re: compile(`(?i)\Abearer\s+([A-Za-z0-9._~+/\-]{20,}={0,2})`), check: random},
		{kind: "aws-secret-key", anchors: []string{"aws", "secretaccesskey", "secret_access_key", "secretkey",
			"secret_key"}, glued: true,
			re: compile(`(?i)\A[a-z0-9_.\- ]{0,50}["'\]]{0,2}\s{0,5}(?:[:=,]|=>|` +
				`:=)\s{0,5}["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)`), check: mixed},
		{kind: "aws-secret-key", anchors: []string{"akia", "asia"},
			re: compile(`\A(?:AKIA|ASIA)[A-Z0-9]{16}(?:[^A-Za-z0-9/+](?s:.{0,60}?))?[^A-Za-z0-9/+]([A-Za-z0-9/+]{40})` +
				`(?:[^A-Za-z0-9/+=]|\z)`), check: mixed},
		{kind: "gcs-secret", anchors: []string{"goog1", "goog4"}, after: 160,
			re: compile(`\AGOOG[14][A-Z0-9]{15,57}(?:[^A-Za-z0-9/+](?s:.{0,60}?))?[^A-Za-z0-9/+]([A-Za-z0-9/+]{40})` +
				`(?:[^A-Za-z0-9/+=]|\z)`), check: mixed},
		{kind: "aws-session-token", anchors: []string{"session_token", "sessiontoken", "security_token"}, glued: true,
			after: 3000,
			re: compile(`(?i)\A(?:session|security)_?token["']?\s{0,5}(?:[:=]|` +
				`=>)\s{0,5}["']?([A-Za-z0-9/+=]{100,})`)},
		{kind: "azure-storage-key", anchors: []string{"accountkey=", "sharedaccesskey="}, glued: true,
			re: compile(`(?i)\A(?:account|sharedaccess)key=([A-Za-z0-9+/]{20,88}={0,2})`), check: notPlaceholder},
		{kind: "azure-sas", anchors: []string{"sig="},
			re: compile(`\Asig=([A-Za-z0-9%+/]{43,70}(?:%3[Dd]|=)|[A-Za-z0-9_\-]{43})(?:[^A-Za-z0-9_\-]|\z)`)},
		{kind: "azure-sas", anchors: []string{"sharedaccesssignature "},
			re: compile(`(?i)\Asharedaccesssignature\s+(r=[^\s"'&]{8,300}&[^\s"']{20,300})`)},
		{kind: "authorization", anchors: []string{"botconnector "},
			re: compile(`(?i)\Abotconnector ([A-Za-z0-9_\-]{11}\.[A-Za-z0-9_\-]{43})`)},
		{kind: "password-hash", anchors: []string{"$2a$", "$2b$", "$2x$", "$2y$"}, glued: true,
			re: compile(`\A(\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53})`)},
		{kind: "password-hash", anchors: []string{"$apr1$", "pbkdf2"}, glued: true,
			re: compile(`\A(\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|` +
				`pbkdf2[_:\-]sha\d+[$:]\d+[$:][A-Za-z0-9+/=.]{4,}[$:][A-Za-z0-9+/=.]{20,})`)},
		{kind: "tink-keyset", anchors: []string{"google.crypto.tink."}, glued: true,
			re: compile(`\Agoogle\.crypto\.tink\.[A-Za-z0-9]{3,60}\\?"\s*,` +
				`\s*\\?"value\\?"\s*:\s*\\?"([A-Za-z0-9+/=_\-]{16,})`)},
		{kind: "cookie", anchors: []string{"cookie"}, glued: true, after: 2000, locate: cookieHeader},
		{kind: "url-password", anchors: []string{"://"}, glued: true, after: 200,
			re: compile(`\A://([A-Za-z0-9_\-.~!$*%]{12,150})(?::|:x-oauth-basic)?@[A-Za-z0-9\[]`), check: isScrambled},
		{kind: "password", anchors: []string{"identified by", "with password", "securestring", "sshpass"}, glued: true,
			after: 120, locate: quotedAfter(
				`(?i)\A(?:identified by|with password|securestring(?: -string)?|sshpass -p)\s*["']`, passwordText)},
		{kind: "password", anchors: []string{"oracle:thin:", "sqlplus "}, check: connectionPassword,
			re: compile(`(?i)\A(?:oracle:thin:|sqlplus (?:-\S+ ){0,3})[^\s/@:]{1,64}/"?([^\s"@]{4,64})"?(?:@|\s|\z)`)},
		{kind: "password", anchors: []string{"requirepass ", "masterauth ", "> auth "}, glued: true,
			re:    compile(`(?i)\A(?:requirepass|masterauth|> auth(?: +[\w\-]{1,32})?) +"?([^\s"]{8,64})`),
			check: isArgument},
		{kind: "password-hash", anchors: []string{"$1$", "$5$", "$6$", "$8$", "$y$", "$argon2"}, glued: true,
			re: compile(`\A(\$(?:1|5|6|8|y|argon2(?:i|d|id))\$[./A-Za-z0-9,=$+]{28,})`)},
		{kind: "password", anchors: []string{"machine ", "default login", "default\n"},
			re: compile(`(?i)\A(?:machine\s+\S{1,}|default)\s+login\s+\S{1,}\s+password\s+(\S{3,})`), line: true,
			check: func(b []byte) bool {
				return isTyped(b) || notPlaceholder(b) && !template.Match(bytes.TrimRight(b, `"'`))
			}},
		{kind: "password", anchors: []string{"-u", "--user", "--proxy-user"}, glued: true, locate: curlUser},
		{kind: "facebook-token", anchors: []string{"facebook", "fb_", "appsecret"}, glued: true,
			re: compile(`(?i)\A[a-z_.\- ]{0,30}["']?\s{0,3}[:=]\s{0,3}["']?([a-f0-9]{32})(?:[^A-Za-z0-9]|\z)`)},
		{kind: "docker-auth", anchors: []string{`"auth"`}, glued: true,
			re: compile(`\A"auth"\s{0,5}:\s{0,5}"([A-Za-z0-9+/]{12,}={0,2})"`)},
		{kind: "secret", anchors: []string{"secret_key"}, glued: true, after: 300,
			re: compile(`(?i)\Asecret_key['"\]]{0,2}\s{0,5}[:=]\s{0,5}['"]([^'"\n]{40,80})['"]`), check: dense},
		{kind: "secret", anchors: []string{"privatekey", "presharedkey"}, glued: true,
			re: compile(`(?i)\A(?:private|preshared)key\s*=\s*([A-Za-z0-9+/]{43}=)`)}, // WireGuard
		{kind: "password", anchors: []string{"password", "pwd"}, glued: true, before: 100, after: 150,
			re: compile(`(?i)\b(?:user(?: ?id|name)?|uid)\s*=\s*[^;\s"']{2,100}\s*;?[^\n]{0,30}?(?:password|` +
				`pwd)\s*=\s*([^\s;"'&,]{3,500})(?:[;"'\s]|\z)`), line: true, check: connectionPassword},
		{kind: "password", anchors: []string{"password is ", "password for "},
			re: compile(`(?i)\Apassword (?:for [^\n]{3,60} )?is ["'` + "`" + `]([^"'` + "`" + `\n]{4,60})["'` + "`" +
				`]`), check: passwordText},
		{kind: "password", anchors: []string{"networkcredential"},
			re: compile(`(?i)\Anetworkcredential\s*\(\s*"[^"\n]{1,80}"\s*,\s*"([^"\n]{3,80})"`), check: notPlaceholder},
		{kind: "password", anchors: []string{"directoryentry"},
			re:    compile(`(?i)\Adirectoryentry\s*\(\s*"[^"\n]{1,100}"\s*,\s*"[^"\n]{1,80}"\s*,\s*"([^"\n]{3,80})"`),
			check: notPlaceholder},
		{kind: "password", anchors: []string{"password '"}, glued: true, after: 120,
			re: compile(`(?i)\Apassword '([^'\s]{4,80})'`), check: isPasswordWord}, // ALTER USER … PASSWORD '…'
		{kind: "password", anchors: []string{"mysql", "mariadb", "ldapsearch", "ldapmodify", "ldapadd", "ldapdelete",
			"ldapwhoami", "redis-cli", "sshpass", "docker login", "podman login", "helm registry"}, after: 300,
			locate: commandPassword},
		{kind: "password", anchors: []string{"@tcp(", "@unix("}, glued: true, before: 120,
			re: compile(`(?i):([^\s:@"'{}$%]{4,100})@(?:tcp|unix)\(`), check: connectionPassword}, // Go's MySQL driver
		{kind: "password", anchors: []string{":5432:"}, glued: true, after: 240,
			// .pgpass
			re: compile(`\A:5432:[^:\s]{1,64}:[^:\s]{1,64}:([^\s:"']{4,100})`), line: true, check: isPasswordWord},
		{kind: "password", anchors: []string{"*:*:*:"}, glued: true, after: 240,
			re: compile(`\A\*:\*:\*:[^:\s]{1,64}:([^\s:"']{4,100})`), line: true, check: isPasswordWord},
		{kind: "password", anchors: []string{"secretstr(", "secretstring("}, after: 200,
			re: compile(`(?i)\Asecretstr(?:ing)?\(\s{0,3}["']([^"'\s]{4,120})["']`), check: passwordText},
		{kind: "password", anchors: []string{"password('"}, glued: true, after: 120,
			re: compile(`(?i)\Apassword\('([^'\s]{4,80})'\)`), check: isPasswordWord},
		{kind: "password", anchors: []string{"psk="}, after: 100, re: compile(`\Apsk="([^"\n]{8,63})"`),
			check: passwordText},
		{kind: "authorization", anchors: []string{"auth plain "},
			re: compile(`(?i)\Aauth plain ([A-Za-z0-9+/]{8,}={0,2})`), check: notDummy},
		{kind: "private-key", anchors: []string{"mii", "mhcc", "mc4c", "mig", "mihc", "b3blbnnza"}, after: 100,
			re: derKey, check: notDummy},
		{kind: "password", anchors: passwordTerms(), glued: true, after: 20, locate: passwordInSentence},
		{kind: "secret", anchors: nearWords(), glued: true, after: 100, locate: nearby},
		{kind: "secret", anchors: headWords(), glued: true, column: columnsBelow},
		{kind: "secret", anchors: headWords(), glued: true, column: markupColumn},
		{kind: "secret", anchors: []string{"insert into", "insert or "}, glued: true, column: insertedValues},
		{kind: "password", anchors: []string{"passw", "pwd>", "pass>", "passphrase", "secret>", "token>", "key>"},
			glued: true, after: 400, locate: elementPassword},
	}
}
