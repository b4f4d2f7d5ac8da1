package config

import (
	"slices"
	"strings"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// NamesCredential reports whether a variable, a header or a flag with this name usually holds
// a credential: one of its words means a credential, and its last word does not mean an
// attribute of one, as in TOKEN_FILE.
func NamesCredential(name string) bool {
	words := nameWords(name)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	switch {
	case endsIn(words, "access", "key", "id"), endsIn(words, "secret", "id"), endsIn(words, "role", "id") &&
		slices.Contains(words, "vault"):
		return true
	case slices.Contains(aboutCredentials, last):
		return false
	case last == "key" || last == "keys":
		return !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(ordinaryKeys, w) })
	case slices.Contains(words, "tokens") && !slices.Contains(words, "secret"): // of a model: MAX_TOKENS
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(credentialWords, w) }) ||
		last == "auth" || endsIn(words, "pass") || endsIn(words, "pat") || endsIn(words, "dsn") ||
		endsIn(words, "connection", "string")
}

var (
	credentialWords = []string{
		"token", "secret", "secrets", "password", "passwd", "passphrase", "passcode", "pwd", "credential",
		"credentials", "creds", "apikey", "authkey", "accesskey",
		"secretkey", "privatekey", "authtoken", "accesstoken", "jwt", "bearer", "authorization", "cookie", "userpass",
		"dbpass", "pgpassword",
	}
	// aboutCredentials are last words of names of an attribute of a credential, such as its
	// path.
	aboutCredentials = []string{
		"path", "file", "filename", "dir", "directory", "folder", "url", "uri", "endpoint", "host", "hostname", "port",
		"server", "name", "names", "id", "ids", "type", "kind",
		"limit", "limits", "max", "min", "count", "size", "length", "ttl", "expiry", "expires", "expiration", "timeout",
		"seconds", "minutes", "hours", "days", "interval",
		"prefix", "suffix", "format", "header", "version", "region", "zone", "enabled", "disabled", "required",
		"enable", "disable", "policy", "provider", "algorithm", "alg",
		"mode", "method", "scope", "scopes", "field", "arn", "issuer", "audience", "user", "username", "email",
		"backend", "store", "manager", "driver", "cmd", "command",
		"helper", "source", "env", "budget", "usage", "rotation", "parallelism", "encoding", "model", "cache", "vault",
		"domain", "realm", "samesite", "secure",
	}
	// ordinaryKeys are words that, in a name that ends in key, mean that the key is not a
	// credential.
	ordinaryKeys = []string{"public", "pub", "primary", "foreign", "cache", "sort", "partition", "group", "object",
		"index", "row", "shortcut", "hot", "issue", "project", "jira", "map", "routing", "registry"}
)

// endsIn reports whether words ends with last.
func endsIn(words []string, last ...string) bool {
	return len(words) >= len(last) && slices.Equal(words[len(words)-len(last):], last)
}

// nameWords returns the words of a name in lower case. It splits at characters other than
// letters and digits, and before a capital that follows a small letter or a digit.
func nameWords(name string) []string {
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	small := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			small = false
			continue
		case unicode.IsUpper(r) && small:
			flush()
		}
		small = unicode.IsLower(r) || unicode.IsDigit(r)
		word.WriteRune(r)
	}
	flush()
	return words
}

// isOrdinary reports whether a value is not a credential even if its name is that of one:
// booleans and small numbers, paths and addresses without a password, placeholders and
// common words.
func isOrdinary(value string) bool {
	value = strings.TrimSpace(value)
	return len(value) < 4 || ordinaryValue.MatchString(value) || pathValue.MatchString(value) &&
		strings.Count(value, "/") > 1 && !drawnPath.MatchString(value)
}

var (
	ordinaryValue = lazyregexp.New(
		`(?i)^(?:true|false|yes|no|on|off|none|null|nil|undefined|auto|default|enabled|disabled|required|optional|` +
			`anonymous|guest|public|private|admin|administrator|root|user|username|postgres|mysql|redis|mongo|` +
			`mongodb|rabbitmq|minio|elastic|sa|password|passwd|secret|token|key|apikey|api[_-]key|test|testing|tests|` +
			`example|sample|dummy|demo|change_?me|changeit|placeholder|production|development|staging|local|` +
			`localhost|debug|info|warning|error|trace|verbose|bearer|basic|digest|oauth2?|vault|keychain|keyring|` +
			`file|env|\d{1,6}|\d+(?:\.\d+)+|\d+(?:ms|s|m|h|d|k|kb|mb|gb)|x{3,}|\*+|\.+|<[^>]*>|\$\{[^}]*\}|` +
			`your[-_ ].*|(?:insert|enter|replace|put)[-_ ].*)$`)
	pathValue = lazyregexp.New(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s@]*|~?/[\w./@ -]*|\.{1,2}/[\w./@ -]*|[A-Za-z]:\\.*)$`)
	// drawnPath is a secret in base64 that begins like a path.
	drawnPath = lazyregexp.New(`^/[A-Za-z0-9/]*[0-9][A-Za-z0-9/]*=*$`)
)
