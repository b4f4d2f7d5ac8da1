package redact

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// passwordWords are words in names of passwords. They and secretWords, weakWords and vendorNames
// are the anchors of assignments.
func passwordWords() []string {
	return append([]string{"passw", "passphrase", "pwd", "passcode"}, foreignPasswords()...)
}

// foreignPasswords are words for password in other languages.
func foreignPasswords() []string {
	return []string{"kennwort", "contraseña", "contrasena", "contraseÑa", "mot de passe", "mot_de_passe", "motdepasse",
		"senha", "wachtwoord", "lösenord", "losenord", "salasana",
		"adgangskode", "hasło", "heslo", "jelszó", "parola", "пароль", "Пароль", "密码", "密碼", "パスワード", "비밀번호"}
}

// foreignPassword is an expression that matches them.
var foreignPassword = strings.Join(foreignPasswords(), "|")

func secretWords() []string {
	return []string{
		"secret", "token", "credential", "creds", "hmac", "authorization", "_auth", "authtoken",
		"api_key", "apikey", "api-key", "api.key", "access_key", "access-key", "accesskey", "auth_key", "auth-key",
		"authkey",
		"private_key", "private-key", "privatekey", "encryption_key", "encryptionkey", "signing_key", "signing-key",
		"signingkey",
		"master_key", "masterkey", "client_key", "clientkey", "app_key", "appkey", "account_key", "license_key",
		"session_key",
		"webhook_key", "service_key", "servicekey", "signature_key", "rest_key", "server_key", "user_key",
		"sessionid", "session_id", "sessid", "session=", "connect.sid",
	}
}

// weakWords are weak indications: a value with such a name must also look random.
func weakWords() []string { return []string{"_key", "-key", "csrf", "xsrf", "vapid"} }

// strongName matches names with a word that indicates a secret.
var strongName = compile(`(?i)` + strings.Join(quotedWords(secretWords()), "|"))

func quotedWords(words []string) []string {
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return words
}

// harmlessName matches names that contain token, key or secret but do not indicate a secret: tokens
// that are counted or that page through a list, keys of tables, and properties of a secret.
var harmlessName = compile(`(?i)` +
	`(?:page|next|prev|sync|cursor|continuation|(?:^|[^a-z])(?:max|min|num)|count|total|usage|input|output|prompt|` +
	`completion)[a-z]{0,2}[_\-. ]?tokens?|(?:pub(?:lic)?|verif[a-z]*|(?:^|[^a-z])v|primary|foreign|sort|partition|` +
	`cache|row|idempotency|translation|map|registry|hot|short|query|i18n|locale|label|event|object|data|composite|` +
	`unique|group|recv|send|property|config|react|lookup|site)[_\-. ]?key|(?:passw(?:or)?d|secret|token|key|` +
	`credential)s?[_\-. ]?(?:type|kind|name|path|file|url|uri|field|hint|label|header|length|len|size|count|ttl|` +
	`expir|policy|manager|mgr|id\b|ref\b|arn|hash_?algo|algorithm|selector|placeholder|prompt|prefix|suffix|format|` +
	`usage|endpoint|description|title|regex|pattern|message|error|index|version|class|style|map|store|code|realm|` +
	`(?:auth)?magic)|authenticity|tokeni[sz]|(?:first|second|third|last|single|multi|one|two|by|com|over|render|` +
	`compiler)[_\- ]?pass$|^(?:aws|alexa|custom)::\w+::\w+$|\.(?:encode|decode|replace|split|strip|startswith|` +
	`endswith|format|join)$|(?:^|[_\-.])(?:non|not|no|in)[_\-]?(?:matching|valid)|^nonMatching|^(?:non|invalid|fake|` +
	`dummy|mock|example|sample)[_\-]?(?:[A-Z]|[a-z]*[_\-])|public[_\-]?(?:token|key|secret|password)|^public`)

// harmlessVendor matches names that indicate an identifier or a digest.
var harmlessVendor = compile(`(?i)` +
	`(?:sha\d*|digest|hash|checksum|integrity|commit|revision|rev|version|uuid|guid|url|uri|link|href|path|file|` +
	`image|img|icon|host|domain|region|bucket|channel|repo|repository|branch|tag|etag|class|package|module|import|` +
	`require|endpoint|name|title|description|model|ids?|ref)$|(?:sha256|checksum|integrity)`)

// assignmentRules find values assigned to names that indicate a secret.
func assignmentRules() []rule {
	return []rule{
		{kind: "password", anchors: passwordWords(), glued: true, after: 300, locate: password},
		{kind: "password", anchors: []string{"pass"}, glued: true, after: 300, locate: shortPassword},
		{kind: "secret", anchors: append(secretWords(), weakWords()...), glued: true, after: 300,
			locate: given(isSecret)},
		{kind: "secret", anchors: vendorNames(), glued: true, after: 300, locate: vendorSecret},
		{kind: "secret", anchors: []string{"key", "appid"}, glued: true, after: 300, locate: keyValue},
	}
}

// given returns a locator for the assignments that judge accepts.
func given(judge func(assignment) bool) locator {
	return func(text []byte, at, size int) (place, bool) {
		a, ok := assignmentAt(text, at, size)
		return place{a.start, a.end, a.cost}, ok && judge(a) && (!a.wide || isMixedText(a.value))
	}
}

// password is given(isPassword). It also finds plain words in lines of YAML.
func password(text []byte, at, size int) (place, bool) {
	a, ok := assignmentAt(text, at, size)
	return place{a.start, a.end, a.cost}, ok && (!a.wide && isYAMLPassword(text, a) || isPassword(a) &&
		(!a.wide || isMixedText(a.value)))
}

// shortPassword is password for names that end in "pass", which also has other meanings.
func shortPassword(text []byte, at, size int) (place, bool) {
	isPart := at > 0 && isNameByte(text[at-1]) && text[at-1] != '-'
	if at+size < len(text) && (isLetter(text[at+size]) || text[at+size] == '.' || text[at+size] == '_' && !isPart) {
		return place{cost: 1}, false
	}
	p, ok := password(text, at, size)
	if isPart || !ok {
		return p, ok
	}
	if bytes.HasPrefix(text[at:], []byte("PASS:")) { // of a test
		return p, false
	}
	value := text[p.start:p.end]
	return p, isGenerated(value) || isTyped(value) || isScrambled(value) || hasDigit(value) &&
		bytes.IndexByte(value, '/') < 0
}

// isYAMLPassword reports whether a value without quotes is a password of lower-case letters or
// digits, alone in a line of YAML. The line before must also be YAML, and not code.
func isYAMLPassword(text []byte, a assignment) bool {
	if a.quoted || harmlessName.Match(a.name) || !passwordName.Match(a.name) || !plainWord.Match(a.value) ||
		!passwordText(a.value) {
		return false
	}
	if a.end < len(text) && text[a.end] != '\n' && text[a.end] != '\r' {
		return false
	}
	before := text[max(0, a.start-maxYAMLLines):a.start]
	return yamlLines.Match(before)
}

// maxYAMLLines is the maximum number of bytes before the value that are examined, enough for two
// lines.
const maxYAMLLines = 300

var (
	plainWord = compile(`^[a-z0-9]{4,}$`)
	yamlLines = compile(
		`(?:^|\n)[ \t]*(?:- )?[A-Za-z_][\w.\-]*:(?:[ \t]+[^\n{(\[,;]*[^\n{(\[,` +
			`;\s])?[ \t]*\r?\n[ \t]*(?:- )?[A-Za-z_][\w.\-]*:[ \t]+$`)
)

// vendorSecret is given(isVendorSecret) if the vendor's name begins a word.
func vendorSecret(text []byte, at, size int) (place, bool) {
	if !beginsWord(text, at) {
		return place{}, false
	}
	p, ok := given(isVendorSecret)(text, at, size)
	if ok {
		return p, true
	}
	s, read, ok := afterVendor(text[at+size : min(len(text), at+size+nearAfter+maxToken)])
	return place{at + size + s.start, at + size + s.end, p.cost + read}, ok
}

// keyValue is given(isKeyValue).
func keyValue(text []byte, at, size int) (place, bool) {
	if at+size < len(text) && isWord(text[at+size]) {
		return place{}, false
	}
	return given(isKeyValue)(text, at, size)
}

// isKeyValue requires more of a value than isSecret, because names that end in "key" also belong to maps,
// objects and tables.
func isKeyValue(a assignment) bool {
	name := bytes.Trim(a.name, "-._")
	return !harmlessName.Match(name) && lastWeak.Match(name) && !isOwnName(a) && isStrayToken(a.value)
}

// beginsWord reports whether a word begins at text[at], unlike in rookTable or SetSysctl.
func beginsWord(text []byte, at int) bool {
	if at == 0 || !isLetter(text[at-1]) || bytes.HasSuffix(text[:at], []byte("-D")) {
		return true
	}
	isUpper := func(c byte) bool { return c&0x20 == 0 }
	return isUpper(text[at]) && !isUpper(text[at-1]) && (at+1 == len(text) || !isUpper(text[at+1]))
}

func isPassword(a assignment) bool {
	switch {
	case harmlessName.Match(a.name) || isOwnName(a):
		return false
	case passwordName.Match(a.name) && (isGenerated(a.value) || isEncodedSecret(a.value)):
		return true
	case a.loose:
		return passwordName.Match(a.name) && (isTyped(a.value) || isScrambled(a.value))
	case passwordNumber.Match(a.value):
		return passwordName.Match(a.name) && !isRepetitive(a.value) && !strings.HasPrefix("1234567890", string(a.value))
	case a.quoted && !a.call:
		if bytes.ContainsAny(a.value, " <>(){}[]") && !passwordName.Match(a.name) || isProse(a.value) {
			return false
		}
		return passwordText(a.value)
	case a.typed:
		return passwordName.Match(a.name) && isTyped(a.value)
	case a.call || a.flag:
		return len(a.value) >= 6 && hasDigit(a.value) && passwordText(a.value) && !isReference(a.value)
	case a.plain && a.form:
		return passwordText(a.value) && !isReference(a.value)
	case a.plain && isUpperName(a.name):
		return (passwordText(a.value) || typeWord.Match(a.value)) && !isReference(a.value)
	}
	return secretWord(a.value) || passwordName.Match(a.name) && len(a.value) >= 10 && mixed(a.value) &&
		changes(a.value) >= 4 && bytes.IndexByte(a.value, '_') < 0 && random(a.value)
}

// typeWord matches words that are the type of a password, except in an environment.
var typeWord = compile(`^(?:string|text)$`)

// isMixedText reports whether a value is a secret rather than a table cell that describes a name:
// letters and digits alternate, or it contains other characters.
func isMixedText(value []byte) bool {
	if isReference(bytes.TrimLeft(value, "*&[]")) {
		return false
	}
	return changes(value) >= 3 && !dataType.Match(value) || hasDigit(value) && bytes.ContainsAny(value, "!@#$%^&*+")
}

// dataType matches words with numbers: varchar255, v1beta1, 2h30m, sha256Sum1.
var dataType = compile(
	`^(?:[a-z]{1,12}\d{1,4}){1,3}[a-z]{0,12}$|^(?:\d{1,4}[a-z]{1,6}){1,4}$|^[a-z]{1,12}\d{1,4}(?:[A-Z][a-z]+\d{0,4})+$`)

// passwordNumber matches a number too long for a count or a length of passwords.
var passwordNumber = compile(`^\d{6,64}$`)

// isUpperName reports whether a name is in upper case, like environment variables.
func isUpperName(name []byte) bool { return bytes.Equal(name, bytes.ToUpper(name)) }

func isSecret(a assignment) bool {
	switch {
	case zeroUUID.Match(a.value):
		return false
	case isUUID(a.value) && secretID.Match(a.name):
		return true
	case harmlessName.Match(a.name) || isOwnName(a):
		return false
	case strongName.Match(a.name) && (isGenerated(a.value) || isEncodedSecret(a.value)):
		return true
	case bytes.IndexByte(a.value, ' ') >= 0 || isCounted(a.value) && !isVendorName(a.name):
		return false
	case isUUID(bytes.Trim(a.value, "{}")):
		return lastSecret.Match(a.name)
	case !strongName.Match(a.name):
		return lastWeak.Match(a.name) && isDrawn(a.value)
	case onlyNumber.Match(a.value):
		return lastSecret.Match(a.name) && entropy(a.value) >= 2
	case a.loose:
		return isScrambled(a.value)
	case a.quoted:
		return len(a.value) >= 8 && (secretText(a.value) || isSymbols(a.value))
	}
	return secretWord(a.value) || isDrawn(a.value)
}

// isOwnName reports whether a value is its own name followed by a number.
func isOwnName(a assignment) bool {
	return bytes.EqualFold(bytes.TrimRight(a.value, "0123456789"), bytes.Trim(a.name, "-."))
}

// lastSecret matches names whose last word indicates a secret.
var lastSecret = compile(`(?i)(?:token|secret|key|auth|authorization|credentials?|password)$`)

// lastWeak is lastSecret for weak words.
var lastWeak = compile(`(?i)(?:key|appid|csrf|xsrf|vapid)$`)

// secretID matches a part of the credentials of HashiCorp Vault's AppRole. It is a secret although
// its name is that of an identifier.
var secretID = compile(`(?i)secret[_-]?id$`)

// onlyNumber matches a number too long for a count or a measurement.
var onlyNumber = compile(`^\d{8,64}$`)

// isVendorSecret is stricter than isSecret, because many other values have a vendor's name in
// theirs.
func isVendorSecret(a assignment) bool {
	if harmlessName.Match(a.name) || harmlessVendor.Match(a.name) {
		return false
	}
	if isUUID(a.value) {
		return lastSecret.Match(a.name) && !zeroUUID.Match(a.value)
	}
	return isDrawn(a.value)
}

var uuid = compile(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

func isUUID(b []byte) bool { return uuid.Match(b) }

// namedSecret examines a value whose name is known from data: a member, a column, or a name beside
// it.
func namedSecret(name, value []byte, number bool) (span, bool) {
	if len(name) == 0 || len(name) > 100 || len(value) > maxValue || harmlessName.Match(name) {
		return span{}, false
	}
	if cookieMember.Match(name) {
		return span{start: 0, end: len(value), kind: "cookie"}, !number && hasCookie(value)
	}
	kind, isPasswordName := "secret", passwordName.Match(name)
	if isPasswordName {
		kind = "password"
	}
	if number {
		return span{start: 0, end: len(value), kind: kind}, isPasswordName && len(onlyDigits(value)) == len(value) &&
			len(value) >= 6
	}
	a := assignment{name: name, value: value, end: len(value), quoted: true, plain: true}
	if word, rest, ok := bytes.Cut(value, []byte(" ")); ok && isScheme(word) {
		a.value = bytes.TrimLeft(rest, " ")
		a.start = a.end - len(a.value)
	}
	ok := false
	switch {
	case len(a.value) < 4:
	case isPasswordName:
		ok = passwordText(a.value)
	case secretNames.Match(name):
		ok = isGenerated(a.value) || len(a.value) >= 8 && bytes.IndexByte(a.value, ' ') < 0 && secretText(a.value) &&
			(!isCounted(a.value) || isVendorName(name))
	case bytes.EqualFold(name, []byte("key")): // of a map or of an object, more often than a credential
		ok = isStrayToken(a.value)
	case strongName.Match(name) || lastWeak.Match(name):
		ok = len(a.value) >= 8 && isSecret(a)
	case isVendorName(name):
		ok = isVendorSecret(a)
	}
	return span{start: a.start, end: a.end, kind: kind}, ok
}

// columnSecret is namedSecret for a value of a column or a list. Columns named "token" also contain words, so the value
// must be long.
func columnSecret(name, value []byte) (span, bool) {
	s, ok := namedSecret(name, value, false)
	return s, ok && (!tokenColumn.Match(name) || len(value) >= 16 || isGenerated(value))
}

var tokenColumn = compile(`(?i)^tokens?$`)

// secretNames matches names of members whose values are secrets even if they do not look random.
var secretNames = compile(
	`(?i)^(?:[a-z0-9]+[_\-. ]?)*?(?:passphrase|secret|api[_\- ]?key|apikey|(?:access|auth|private|secret|signing|` +
		`encryption|client|master|session|service|app)[_\- ]?key|(?:access|auth|refresh|id|bearer|session|api|oauth|` +
		`personal|bot|csrf)[_\- ]?token|token|client[_\- ]?secret|credentials?|x-auth|authorization)$`)

// passwordName matches names of passwords.
var passwordName = compile(`(?i)(?:passw(?:or)?[dt]|` + foreignPassword +
	`|passphrase|passcode|pwd|^pass|[_\-. ]pass|[a-z]Pass)s?\d?$`)

// isVendorName reports whether a name contains a vendor's name.
func isVendorName(name []byte) bool {
	found := false
	vendorWords().scan(name, func(int, int) bool { found = true; return false })
	return found
}

var vendorWords = sync.OnceValue(func() *automaton { return newAutomaton(vendorNames()) })
