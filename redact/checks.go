package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// mixed reports whether a value has lower case, upper case and a digit. Random base64 of forty
// characters nearly always has; paths and digests do not.
func mixed(b []byte) bool {
	return bytes.ContainsAny(b, "0123456789") &&
		bytes.ContainsAny(b, "abcdefghijklmnopqrstuvwxyz") &&
		bytes.ContainsAny(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// entropy returns the Shannon entropy of the bytes, in bits per byte.
func entropy(b []byte) float64 {
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(b))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// placeholder matches what documentation and templates contain instead of a secret.
var placeholder = compile(
	`(?i)^(?:\$\{?|\{\{|<|%\(|%[a-z]|#\{)|^[*x.\-_]+$|^an?[_\- ][a-z]+(?:[_\- .]|$)|^(?:your|my|the|some|enter|` +
		`insert|replace|change|add|put)[_\- .]|change_?me|replace_?me|placeholder|redacted|dummy|example|sample|` +
		`^(?:passw(?:or)?d|passwd|pass|pwd|secret|token|string|text|required|optional|none|null|nil|undefined|true|` +
		`false|port|user(?:name)?|hidden|masked|todo|tbd|fixme|test(?:ing)?|foobar|default)\d{0,3}$|^(?:unsafe|` +
		`insecure|secure|value|null|empty|unset|unknown|disabled|enabled|your|user|foo|bar|baz|abc|pa55word|` +
		`letmein)$|^(?:os|process|config|settings|options|self|this|env|secrets|vars|params|args|req|request|ctx|` +
		`data|props)[.\[]|\(|^(?:true|false|none)`)

// isMadeUp reports whether a value is mostly one repeated character, or a UUID used in examples,
// and therefore not random.
func isMadeUp(b []byte) bool { return monotonous(b) || zeroUUID.Match(b) }

// digest is hexadecimal in lower case.
var digest = compile(`^[0-9a-f]+$`)

var zeroUUID = compile(
	`^(?:0{8}-0{4}-[0-5]?0{3,4}-[089ab]?0{3,4}-0{12}|12345678-1234-|01234567-89ab-cdef-|11111111-2222-3333-|` +
		`1{8}-(?:1{4}|2{4})-(?:1{4}|3{4})-(?:1{4}|` +
		`4{4})-(?:1{12}|5{12})$)`)

// isCiphertext reports whether a value is already encrypted, in a form that identifies itself:
// openssl enc, the transit engine of HashiCorp Vault, Ansible Vault.
func isCiphertext(b []byte) bool { return ciphertext.Match(b) }

var ciphertext = compile(
	`^(?:U2FsdGVkX1[89+/][A-Za-z0-9+/=]+|vault:v\d+:[A-Za-z0-9+/=]+|\$ANSIBLE_VAULT;.*|ENC\[.*\])$`)

// cipherName matches names of algorithms, as they are written in settings and in Java's
// cryptography.
var cipherName = compile(
	`(?i)^(?:AES|DES|3DES|RSA|SHA\d*|HMAC|PBES2|PBKDF2|SCRAM|X?SALSA20|X?CHACHA20|CAMELLIA|ECDSA|ECDHE?|BLOWFISH|` +
		`ARGON2\w*|BCRYPT|SCRYPT|MD5|RC4|ED25519|ARIA|SEED|[HREP]S(?:256|384|512)|A(?:128|192|256)(?:GCM)?KW|SM[234]|` +
		`(?:AES|DES|DESede)Wrap|OAEPWith\w+|PBEWith\w+|PBKDF2With\w+)(?:[_\-/+.](?:[A-Z]{2,}\w*|\d{2,4}\w*|` +
		`[A-Z]\d+\w*)){0,8}$`)

// notPlaceholder reports whether a value is neither a placeholder nor published.
func notPlaceholder(b []byte) bool { return !placeholder.Match(b) && !isPublished(b) }

// credential reports whether the value of a header is a credential, and not code that makes one.
func credential(b []byte) bool {
	return notPlaceholder(b) && notDummy(b) && !isCounted(b) && (!identifier.Match(b) || hasDigit(b)) &&
		entropy(b) >= 2 && (bytes.ContainsAny(b, "0123456789=") || mixedCase(b))
}

// random reports whether a value looks random, and not written by a person.
func random(b []byte) bool {
	return notPlaceholder(b) && !isCounted(b) && bytes.ContainsAny(b, "0123456789") && entropy(b) >= 3
}

// identifier matches names in code and paths: words joined by _ - . / or case.
var identifier = compile(
	`^_*(?:[a-z]+|[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*)(?:[_\-./:][A-Za-z][a-z]*|[_\-./:][A-Z]+|[_\-./:]v?\d{1,4})*$`)

// joined matches words with a few digits, and flags: as2-client-secret, --username=.
var joined = compile(`^[a-z]+\d?(?:[_\-.](?:[a-z]+\d?|\d{1,12}))+$|^--?[a-z]+(?:-[a-z]+)*=?$`)

// cssColour matches a colour in a style sheet.
var cssColour = compile(`^#(?:[0-9a-fA-F]{3,8}|[a-z]+)$`)

// hexadecimal matches a small hexadecimal number.
var hexadecimal = compile(`^-?0[xX][0-9a-fA-F]{1,8}$|^\\\\?[uU][0-9a-fA-F]{4,8}$`)

// address matches the beginning of a URL, a path, a digest or a data URL.
var address = compile(
	`^(?:[a-z][a-z0-9+]{1,10}://|/|\./|\.\./|~/|arn:|sha(?:1|256|512)[:\-]|md5:|urn:|data:|[A-Z]:\\\\)`)

// isAddress reports whether a value begins like that, and is not random base64 that begins with a slash.
func isAddress(b []byte) bool {
	isBase64 := len(b) >= 30 && b[0] == '/' && mixed(b) && changes(b) >= len(b)/6 && !bytes.ContainsAny(b, ".-_~")
	return address.Match(b) && !isBase64
}

// secretText reports whether a quoted value under the name of a secret is a secret.
func secretText(b []byte) bool {
	if isMashed(b) {
		return true
	}
	if isMadeUp(b) || isCiphertext(b) || !notPlaceholder(b) || !notDummy(b) || isAddress(b) ||
		identifier.Match(b) || joined.Match(b) || pattern.Match(b) || versioned.Match(b) || hexadecimal.Match(b) ||
		cipherName.Match(b) || typeName.Match(b) || cssColour.Match(b) {
		return false
	}
	return (bytes.ContainsAny(b, "0123456789!@#$%^&*+=/?") || isASCII(b) && mixedCase(b)) && entropy(b) >= 2
}

// isMashed reports whether a value is lower-case letters of the middle row of a keyboard, as someone types who
// needs any value. No words have so many of them.
func isMashed(b []byte) bool {
	row := 0
	for _, c := range b {
		if c < 'a' || c > 'z' {
			return false
		}
		if bytes.IndexByte([]byte("asdfghjkl"), c) >= 0 {
			row++
		}
	}
	return len(b) >= 12 && row*100 >= len(b)*85 && entropy(b) >= 1.5
}

// typeName matches names of types that begin with an abbreviation or a number: DSAPrivateKey,
// Ed25519PrivateKey, clm58:AgencyCodeType. camelWords matches names with numbers between words:
// ReadUint24LengthPrefixed.
var (
	typeName = compile(
		`^_*[A-Z]{2,5}[a-z]{2,}(?:[A-Z][a-z]{2,})*$|^_*[A-Z]+[a-z]*\d{0,5}(?:[A-Z][a-z]{2,}){2,5}$|` +
			`^[a-z]{2,12}\d{0,8}:(?:[A-Z][a-z]+){3,}$`)
	camelWords = compile(`^[a-z]*(?:[A-Z][a-z]+\d{0,3})+$`)
)

// isASCII reports whether a text is ASCII. Words in other scripts are labels and not keys.
func isASCII(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// pattern matches regular expressions, and text with an escaped quote.
var pattern = compile(`^\[\^?\{\w+\}\]|\[\^?[^\]]{0,20}(?:a-[zf]|A-[ZF]|0-9)|(?:a-z|A-Z|0-9)(?:\]|a-z|A-Z|0-9)|` +
	`\\[dwsb"]|\(\?`)

// passwordText reports whether a value under the name of a password is a password. People choose
// words and password managers use any printable character, so only values that are evidently
// something else are excluded.
func passwordText(b []byte) bool {
	b = judged(b)
	if utf8.RuneCount(b) < 4 || isMadeUp(b) && len(b) >= 16 || cipherName.Match(b) || isCiphertext(b) ||
		filler.Match(b) ||
		versioned.Match(b) || hexadecimal.Match(b) {
		return false
	}
	return !isCode(b) && !label.Match(b) && !phrase.Match(b)
}

// phrase matches a name of many words, pypi-publication-to-the-package-on-release, and a numbered section.
var phrase = compile(`^[a-z]+(?:-[a-z]+){7,}$|^[A-Z]?[a-z]+ \d+(?:\.\d+)+$`)

// label matches labels and messages of forms, and names in code.
var label = compile(`(?i)passw(?:or)?d|passwor[dt]|` + foreignPassword +
	`|^(?:forgot|reset|confirm|new|old|current|invalid|login|sign|user|field|input|label|button|error)(?:[ _\-.]|` +
	`[a-z]{3,}|$)|^[a-z]+(?:\.[a-z]+)+$|^[a-z]+(?:_[a-z]+)+$|^[A-Z]+(?:_[A-Z]+)+$`)

// connectionPassword reports whether the text after a user name in a connection string is a
// password.
func connectionPassword(b []byte) bool {
	return passwordText(b) && !isAddress(b) && !isReference(b)
}

// dense reports whether a text of any characters looks random.
func dense(b []byte) bool { return !bytes.ContainsAny(b, " {}<") && entropy(b) >= 4 }

// reference matches a member of something in code: os.Environ, ed25519.PrivateKey.
var reference = compile(`^[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+$|^[A-Za-z_]\w*\$\d*$`)

// isReference reports whether a value is such a member, and not a token of two parts.
func isReference(b []byte) bool {
	return reference.Match(b) && changes(b) < max(5, len(b)/6) && len(digitInside.FindAllIndex(b, 2)) < 2
}

// digitInside matches a digit within a word. Names in code have digits at their end: ed25519.PrivateKey.
var digitInside = compile(`[A-Za-z]\d{1,2}[A-Za-z]`)

// product matches a number times a name, in code.
var product = compile(`^\d+[*/+][A-Za-z_]\w*$|^[A-Za-z_]\w*[*/+]\d+$`)

// secretWord is secretText for a value without quotes, which may also be code.
func secretWord(b []byte) bool {
	if len(b) < 10 || isReference(b) || constantName.Match(b) || product.Match(b) || !secretText(b) ||
		!bytes.ContainsAny(b, "0123456789") ||
		!bytes.ContainsAny(b, letters) {
		return false
	}
	if changes(b) >= 3 || bytes.ContainsAny(b, "!@#$%^&*+") {
		return entropy(b) >= 2.7
	}
	return entropy(b) >= 3.2
}

// constantName matches names of constants in code: HMAC_SHA1.
var constantName = compile(`^[A-Z]{2,}\d{0,3}(?:_[A-Z]+\d{0,3})+$`)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func mixedCase(b []byte) bool {
	return bytes.ContainsAny(b, letters[:26]) && bytes.ContainsAny(b, letters[26:]) && entropy(b) >= 3.5
}

// isDrawn reports whether a value looks random and is not a misshapen token of a vendor.
func isDrawn(b []byte) bool { return looksRandom(b) && !isMisshapen(b) }

// looksRandom reports whether a value is long enough and looks random: letters and digits alternate,
// and it does not match the form of something else.
func looksRandom(b []byte) bool {
	if len(b) < 16 || len(b) > maxValue || isMadeUp(b) || isCiphertext(b) || !notPlaceholder(b) ||
		isAddress(b) || identifier.Match(b) || isReference(b) || !tokenBytes.Match(b) {
		return false
	}
	return entropy(b) >= 3 && changes(b) >= max(3, len(b)/10)
}

// isScrambled is isDrawn, and also accepts shorter values with letters of both cases between digits.
func isScrambled(b []byte) bool {
	return isDrawn(b) || len(b) >= 10 && len(b) < 16 && mixed(b) && changes(b) >= 3 && random(b) &&
		tokenBytes.Match(b) && !identifier.Match(b) && !isReference(b) && !isAddress(b)
}

var tokenBytes = compile(`^[A-Za-z0-9_\-+/=.~:|!%]+$`)

// changes returns how often a letter is followed by a digit or the reverse. Words, dates and
// versions have few such changes.
func changes(b []byte) int {
	n, last := 0, byte(0)
	for _, c := range b {
		class := byte(0)
		switch {
		case isDigit(c):
			class = '0'
		case isLetter(c):
			class = 'a'
		}
		if class != 0 && last != 0 && class != last {
			n++
		}
		last = class
	}
	return n
}

// isSlackToken reports whether a value contains the numbers of workspace and user, or has the
// length of tokens that encode them.
func isSlackToken(b []byte) bool {
	return notDummy(b) && b[len(b)-1] != '-' && (slackNumber.Match(b) || len(b) >= 60 &&
		bytes.ContainsAny(b, "0123456789"))
}

var slackNumber = compile(
	`-\d{6,}-.*[A-Za-z0-9]{8}|-\d+-\d+-\d+-[0-9a-f]{16,}|-\d-[A-Za-z0-9]{24,}|` +
		`^xox[ar]-(?:\d-)?[a-z]*\d[A-Za-z0-9]{7,}$`)

// isDiscordToken reports whether the first part is the base64 of a user number.
func isDiscordToken(b []byte) bool {
	first, _, _ := bytes.Cut(b, []byte("."))
	number, err := base64.RawStdEncoding.DecodeString(string(first))
	return err == nil && len(onlyDigits(number)) == len(number)
}

// isNATSSeed checks the CRC-16 (polynomial 0x1021, XMODEM) that ends an nkey.
func isNATSSeed(b []byte) bool {
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(string(b))
	if err != nil || len(raw) < 3 {
		return false
	}
	body, sum := raw[:len(raw)-2], binary.LittleEndian.Uint16(raw[len(raw)-2:])
	crc := uint16(0)
	for _, c := range body {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
				continue
			}
			crc <<= 1
		}
	}
	return crc == sum
}
