package redact

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// How far a rule searches after its anchor by default, in bytes.
const (
	defaultAfter = 600
)

// rule finds one kind of credential. It is tried only around its anchors, which are words that
// every value of the format contains. Its cost therefore depends on how often the anchors occur and
// not on the length of the text.
type rule struct {
	kind    string
	anchors []string // in lower case; they match in any case
	before  int      // bytes before the anchor that belong to the value
	after   int      // bytes from the anchor on; 0 means defaultAfter
	// re has the value in group 1. If before is set, re is searched for around the anchor. Otherwise
	// it has to match at the anchor.
	re *lazyregexp.Regexp
	// locate finds the value instead of re.
	locate locator
	// column finds any number of values below a table header, instead of re and locate.
	column func(text []byte, at, size int) ([]span, int)
	// glued allows letters and digits right before the anchor.
	glued bool
	line  bool                    // the value ends at an escaped line break
	check func(value []byte) bool // nil means notDummy
}

// place is the position of a value, with the cost of the search in units.
type place struct{ start, end, cost int }

// locator finds a value from an anchor, which is text[at:at+size].
type locator func(text []byte, at, size int) (place, bool)

// token returns a rule for values that consist of a fixed prefix and an expression. If the prefix
// ends in a separator, it is specific enough, and a value longer than the format is matched as a
// whole: it may be two tokens in a row, or a token with other text attached. A counted value must
// have exactly the format.
func token(kind, prefix, rest string) rule {
	exact := compile(`\A` + regexp.QuoteMeta(prefix) + rest + `\z`)
	r := rule{kind: kind, anchors: []string{strings.ToLower(prefix)}, check: func(value []byte) bool {
		secret := value[len(prefix):]
		return notDummy(secret) && !isRepetitive(secret) && (!isCounted(secret) || exact.Match(value))
	}}
	expression := `\A(` + regexp.QuoteMeta(prefix) + rest
	if len(prefix) >= 3 && strings.ContainsAny(prefix[len(prefix)-1:], "_-.") {
		expression += `[A-Za-z0-9_\-]*)`
	} else if len(prefix) > 3 { // one more letter or digit may follow
		expression += `[A-Za-z0-9]?)` + end
	} else {
		expression += `)` + end
	}
	r.re = lazyregexp.New(expression)
	return r
}

// within returns a rule for values with a fixed word inside.
func within(kind, word string, before int, expression string) rule {
	return rule{kind: kind, anchors: []string{strings.ToLower(word)}, before: before,
		re: lazyregexp.New(edge + `(` + expression + `)` + end), check: notDummy}
}

// edge matches what may precede a token. See begins.
const edge = `(?:^|\\[abefnrtv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\[[0-9;:?]{0,32}[A-Za-z]|` +
	`[^A-Za-z0-9]|` + "`[abefnrtv0])"

// end matches the end of a token: it is not followed by a letter or digit, unless another token
// begins there.
const end = `(?:[^A-Za-z0-9]|\z|` + next + `)`

// next matches the beginnings of common tokens.
const next = `A[KS]IA|AIza|ATBB|GOOG[14]|LTAI|SG\.|dapi[0-9a-f]|eyJ|gh[pousr]_|github_pat_|glpat-|hf_|hvs\.|npm_|r8_|` +
	`SK[0-9a-f]{32}|s[kr]k?[_\-](?:live|test|ant|proj|or)|xox[abceoprs]-|xapp-|3MVG9`

// find searches for a value at an anchor, which is text[at:at+size], and returns its span and the
// cost of the search. stuck reports that another value ends at the anchor.
func (r *rule) find(text []byte, at, size int, stuck bool) (s span, cost int, ok bool) {
	if r.locate != nil {
		p, ok := r.locate(text, at, size)
		return span{start: p.start, end: p.end, kind: r.kind}, max(p.cost, r.reach()), ok
	}
	after := r.after
	if after == 0 {
		after = defaultAfter
	}
	glued := false
	from, to := at, min(len(text), at+size+after)
	if r.before > 0 {
		from = max(0, at-r.before-longestEscape)
	} else if !r.glued && !stuck && !begins(text, at) {
		if !r.isFoundInWords(text[at:at+size]) || isInData(text, at) {
			return span{}, 0, false
		}
		glued = true
	}
	m := r.re.FindSubmatchIndex(text[from:to])
	for m != nil && m[1] > 0 && from+m[1] <= at { // a match that ends before the anchor
		from += max(1, m[3])
		m = r.re.FindSubmatchIndex(text[from:to])
	}
	if m == nil || m[2] == m[3] {
		return span{}, r.reach(), false
	}
	s = span{start: from + m[2], end: from + m[3], kind: r.kind}
	// the value is longer than the window
	for s.end == to && to < len(text) && to-s.start < maxValue && encodedBytes[text[to]] {
		s.end++
		to++
	}
	if r.line {
		s.end = s.start + endOfText(text[s.start:s.end])
	}
	check := r.check
	if check == nil {
		check = notDummy
	}
	if s.start == s.end || !check(text[s.start:s.end]) || glued &&
		(endsInWord.Match(text[max(0, at-maxGlued):at+size]) ||
			!isGlued(text[at:at+size], text[min(at+size, s.end):s.end])) {
		return span{}, r.reach(), false
	}
	return s, r.reach(), true
}

// isFoundInWords reports whether a token may begin with this anchor in the middle of a word (xghp_…,
// 1AKIA…). The anchor must not occur in ordinary words.
func (r *rule) isFoundInWords(word []byte) bool {
	switch r.kind {
	case "password", "secret", "authorization", "private-key":
		return false
	}
	return len(word) >= 4 || len(word) == 3 && len(bytes.Trim(word, letters)) > 0 ||
		bytes.EqualFold(word, []byte("xox"))
}

// maxGlued is the maximum number of letters and digits directly before a token.
const maxGlued = 24

// isInData reports whether text[at] is in the middle of base64 data or in a digest, in which the
// beginning of any token occurs by chance.
func isInData(text []byte, at int) bool {
	if m := digestAtEnd.FindIndex(text[max(0, at-maxDigest):min(len(text), at+maxDigest)]); m != nil &&
		m[0] < min(at, maxDigest) {
		return true
	}
	for n := range maxGlued {
		if at-1-n < 0 || !isAlnum(text[at-1-n]) && text[at-1-n] != '+' && text[at-1-n] != '/' {
			return false
		}
	}
	return true
}

// isGlued reports whether a match in the middle of a word is a token: the part after its anchor
// looks random and is not the digest in a file name.
func isGlued(word, value []byte) bool {
	if word[len(word)-1] == '-' && len(word) < 5 && digest.Match(value) {
		return false
	}
	return (hasDigit(value) || mixedCase(value)) && entropy(value) >= 2.8
}

// endsInWord matches a word that ends like the prefix of a token: task_, network_.
var endsInWord = compile(`(?i)(?:^|[^a-z])(?:(?:ba|de|di|du|fla|hu|kio|ma|ri|ta|tu|whi)s|` +
	`(?:benchma|bookma|cle|da|fo|framewo|ma|netwo|pa|spa|wo)r)k[_\-](?:live|test|prod|ant|proj|or)?[_\-]?$`)

// endOfText returns the end of a value without quotes. An escaped line break ends it.
func endOfText(value []byte) int {
	if m := escapedBreak.FindIndex(value); m != nil {
		return m[0]
	}
	return len(value)
}

var escapedBreak = compile(`\\+[nrt]`)

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
