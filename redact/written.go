package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
)

// maxJudged is the maximum number of bytes of a value that are examined to decide whether it is a
// secret.
const maxJudged = 256

func judged(value []byte) []byte { return value[:min(len(value), maxJudged)] }

// template matches a value that programs replace: a reference, a placeholder in brackets, a verb of
// a format string.
var template = compile(
	`^(?:\$\{[^{}]*\}|\$\{[A-Za-z_]\w*|\$[A-Za-z_]\w*(?:[\[:.][\w.\]:]*)?|\$\([^()]*\)|\$\{\{.*\}\}|\{\{.*\}\}|` +
		`\{%.*%\}|<%.*%>|\{[A-Za-z_][\w.\-]*\}|#\{[^{}]*\}|<[A-Za-z/!][\w\- ./:|'"=]*>|%[-+ ` +
		`#0-9.]{0,4}[a-zA-Z]|%[A-Za-z_]\w*%|%\([A-Za-z_]\w*\)[a-z]|@[A-Za-z_]\w*@?|\[[A-Za-z_][\w ` +
		`\-]*\]|&[A-Za-z]+;|\*[A-Za-z]\w*)$`)

// partly matches a text that contains references and otherwise only words.
var partly = compile(
	`^[\w\s./:@$%\-]*(?:\$?\{\{?\s?[A-Za-z_$][\w.]*\s?\}?\}|%[sdvq]|\$\([a-z][^()]*\)|` +
		`</?[a-z]{2,}[^<>]{0,40}>)[\w\s./:@{}$%<>\-]*$`)

// call matches code that makes a value.
var call = compile(`^[\w\s.=!&*$"'+:>(\-]*(?:^|[\s.=!&*(:>])[A-Za-z_]{3,}\d{0,3}(?:(?:\.|::|` +
	`->)[A-Za-z_]\w*)*[!?]?[\[(](?:[\w\s"'.,:$/=\-]|\([\w\s"'.,:$/=\-]*\))*[\])](?:[.\[][\w.()\[\]'"]*)?[\s.,;"'+()` +
	`!?:\[\]\-]*$`)

// dottedCall matches the beginning of a call of a function or method.
var dottedCall = compile(`^\[?[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+[!?]?\(|^[a-z]+(?:_[a-z]+)+\(|^:[a-z]+:`)

// concatenated matches the middle of a string concatenation: "' + password + '", or its beginning: "' . $config['".
var concatenated = compile(`^["']?\s?[+.&]+ .* [+.&]+\s?["']?$|^["'] ?[+.&,] |^["'] ?[+.] ?[A-Za-z$]|` +
	`^\s{0,40}(?:[+.&~]|\.\.|\|\||<>)\s{1,10}[$:@]?[A-Za-z_][\w.:>\-]*` +
	`(?:[\[(]|\s{1,10}(?:[+.&~]|\.\.|\|\||<>)\s*)?$`)

// markup matches a CSS selector, a flag, a name after a symbol, or the end of a sentence.
var markup = compile(
	`^(?:[#.@:&-]{1,2}[A-Za-z][A-Za-z_\-]*(?:[.#:][A-Za-z\-]+|\[[^\]]*\])*|[:;,.!?)\]}]+|` +
		`[,;)\]}\s]+["']?[A-Za-z]{3,}["']?\s?[:=(]["'\s]*|[(\[{][A-Za-z \-]+[)\]}]|:[a-z]+(?::[a-z]+)?:` +
		"`[^`]*`" + `)$`)

// filePath matches a path or a URL without a password.
var filePath = compile(
	`^(?:(?:/|\./|\.\./|~/|[A-Z]:\\|[$%]\w+%?[/\\])[\w./\-~@ ` +
		`\\+]*|[a-z][a-z0-9+]{1,10}://\S*|arn:\S*|(?:sha(?:1|256|512)[:\-]|md5:|urn:|data:)[\w:/+=,;.\-]*)$`)

// versioned matches a version or a range of versions.
var versioned = compile(`^[~^=v<>]{0,2}\d+(?:\.\d+)+(?:[\-+][\w.]+)?$`)

// filler matches the placeholders of documentation for a password.
var filler = compile(
	`(?i)^[*x.\-_•:]+$|^an?[_\- ][a-z]+(?:[_\- .]|$)|^(?:your|my|the|some|enter|insert|replace|change|add|` +
		`put)[_\- .]|change_?me|replace_?me|placeholder|redacted|dummy|example|^sample|^(?:passw(?:or)?d|passwd|pass|` +
		`pwd|secret|token|string|text|required|optional|none|null|nil|undefined|true|false|port|user(?:name)?|hidden|` +
		`masked|todo|tbd|fixme|test(?:ing)?|foobar|default)\d{0,3}$|^(?:unsafe|insecure|secure|value|name|empty|` +
		`unset|unknown|disabled|enabled|foo|bar|baz|abc|pa55word|letmein)$|^(?:os|process|config|settings|options|` +
		`self|this|env|secrets|vars|params|args|req|request|ctx|data|props)[.\[][A-Za-z_.'"\[\]]+$|^(?:true|false|` +
		`none)\b`)

// wordlike matches a word of a sentence, a number, or a symbol between words.
var wordlike = regexp.MustCompile(
	`^[("'\[]*(?:[A-Za-z]?[a-z]+|[A-Z]+)(?:['’./\-][A-Za-z]+)*[)"'\].,:;!?…]*$|^\d{1,4}[.,:;)]?$|^[^A-Za-z0-9]$`)

// isProse reports whether a text with spaces is mostly words. Sentences do not have several spaces in a row.
func isProse(b []byte) bool {
	if bytes.Contains(b, []byte("  ")) {
		return false
	}
	parts := bytes.Fields(b)
	words, letters := 0, 0
	for _, part := range parts {
		if wordlike.Match(part) {
			words++
			if len(part) > 2 {
				letters++
			}
		}
	}
	return len(parts) > 1 && letters > 0 && words*2 > len(parts)
}

// isCode reports whether a value is not a password but code or markup that makes, names or
// describes one.
func isCode(b []byte) bool {
	if isNoReference(b) {
		return false
	}
	return template.Match(b) || partly.Match(b) && !isPasswordAround(b) ||
		call.Match(b) || dottedCall.Match(b) && hasArguments(b) || concatenated.Match(b) && !isDisordered(b) ||
		markup.Match(b) ||
		filePath.Match(b) && !(bytes.LastIndexByte(b, '/') == 0 && mixed(b) && changes(b) >= 3)
}

// isNoReference reports whether a value begins as a reference does, and is too irregular for a name.
func isNoReference(b []byte) bool {
	n := changes(b)
	return bytes.IndexByte([]byte("$@*&"), b[0]) >= 0 && mixed(b) && (n >= 2 && bytes.IndexByte(b, '_') < 0 || n >= 4)
}

// hasArguments reports whether a value with the beginning of a call has arguments of it, and not other symbols.
func hasArguments(b []byte) bool {
	return bytes.IndexByte(b, ')') >= 0 || argument.Match(b[bytes.IndexByte(b, '(')+1:])
}

// argument matches the text after the beginning of a call, which may be cut off.
var argument = compile(`^(?:["'\s&*$]|[A-Za-z_.\[\]>:-]*$|[\w.\[\]>:-]*[,("' ])`)

// isDisordered reports whether a value begins with a quote and then has symbols, digits and letters of both cases as a
// generated password does, unlike the middle of a concatenation.
func isDisordered(b []byte) bool {
	rest := bytes.TrimLeft(b, `"'`)
	return len(rest) >= 8 && mixed(rest) && (changes(rest) >= 3 || signKinds(rest) >= 5) &&
		bytes.IndexByte(rest, ' ') < 0
}

// isPasswordAround reports whether the text without its references is not words but a password, in which a verb such
// as %s or a name in braces occurs by chance.
func isPasswordAround(b []byte) bool {
	if mixed(b) && signKinds(b) >= 5 && bytes.IndexByte(b, ' ') < 0 {
		return true
	}
	rest := referenceWithin.ReplaceAll(b, nil)
	return len(rest) >= 8 && mixed(rest) && changes(rest) >= 3 && bytes.IndexByte(rest, ' ') < 0 &&
		bytes.Count(rest, []byte("/")) <= 2 && bytes.Count(b, []byte("${")) == 0
}

// signKinds returns the number of different symbols in a value.
func signKinds(b []byte) (n int) {
	for i, c := range b {
		if classOf(c) == symbols && bytes.IndexByte(b[:i], c) < 0 {
			n++
		}
	}
	return n
}

var referenceWithin = compile(`\$?\{[^{}]*\}+|%[sdvq]|\$\([^()]*\)|<[^<>]*>`)

// isSymbols reports whether a quoted value is a secret of letters, digits and symbols, and not a template, a
// regular expression or words.
func isSymbols(b []byte) bool {
	return mixed(b) && entropy(b) >= 3.3 && !pattern.Match(b) && bytes.IndexByte(b, '%') < 0 &&
		!bytes.Contains(b, []byte("${")) && isTyped(b)
}

// isGenerated reports whether a value looks like the output of a password generator: it changes between lower case,
// upper case, digits and symbols as often as random characters do, and it has no words.
func isGenerated(b []byte) bool {
	if len(b) < 10 || len(b) > maxTyped || !mixed(b) || !isASCII(b) || entropy(b) < 3.2 || isCounted(b) ||
		isPublished(b) || expression.Match(b) || !passwordText(b) {
		return false
	}
	changes, run, longest, last := 0, 0, 0, 0 // a run is of letters of one case
	for _, c := range b {
		class := classOf(c)
		if class != last {
			changes, run = changes+1, 0
		}
		if run++; class == lower || class == upper {
			longest = max(longest, run)
		}
		last = class
	}
	return changes*9 >= len(b)*4 && longest < 7
}

// The classes of characters in passwords.
const (
	lower = 1 + iota
	upper
	digits
	symbols
)

func classOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return lower
	case 'A' <= c && c <= 'Z':
		return upper
	case isDigit(c):
		return digits
	}
	return symbols
}

// expression matches regular expressions and templates.
var expression = compile(`\[\^?[^\]]{0,20}(?:a-[zf]|A-[ZF]|0-9)|\(\?|\$\{|\{\{|` +
	`%[-+0-9.]*[sdvqx][^A-Za-z0-9].*%[-+0-9.]*[sdvqx]`)

// isEncodedSecret reports whether a value is the base64 of a generated password, or its hexadecimal digits with
// separators.
func isEncodedSecret(b []byte) bool {
	if len(b) < 12 || len(b) > 3*maxTyped {
		return false
	}
	plain, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil && hexPairs.Match(b) {
		plain, err = hex.DecodeString(strings.NewReplacer(":", "", "-", "").Replace(string(b)))
	}
	return err == nil && isASCII(plain) && bytes.IndexFunc(plain, unicode.IsControl) < 0 &&
		(isGenerated(plain) || isTyped(plain) || isScrambled(plain))
}

// hexPairs matches hexadecimal digits with separators: 67:68:70.
var hexPairs = compile(`^[0-9A-Fa-f]{2}(?:[:\-][0-9A-Fa-f]{2}){7,}$`)

// isTyped reports whether a value without quotes, which may also be code, is a password with
// symbols: it has letters, digits and symbols, and no words between the symbols.
func isTyped(b []byte) bool {
	if len(b) < 8 || !bytes.ContainsAny(b, letters) || isCode(b) || !passwordText(b) {
		return false
	}
	signs, digits, run, longest := 0, 0, 0, 0 // a run is of lower-case letters
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			run++
			longest = max(longest, run)
			continue
		case isDigit(c):
			digits++
		case !isLetter(c):
			signs++
		}
		run = 0
	}
	return signs > 0 && (digits+signs >= 3 || mixed(b)) && (longest < 7 || longest < 10 && digits+signs >= 6) &&
		entropy(b) >= 2.7 && (digits > 0 || signs >= 4)
}
