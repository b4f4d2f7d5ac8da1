package redact

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// How far a rule looks around its anchor, unless it says otherwise, in bytes.
const (
	defaultAfter = 600
)

// rule finds one kind of credential. It is tried only around its anchors, words
// that the format cannot be without, so that its cost follows from how often they
// occur and not from how long the text is.
type rule struct {
	kind    string
	anchors []string // lower case; the text's case does not matter here
	before  int      // bytes before the anchor that belong to the value
	after   int      // bytes from the anchor on; 0 means defaultAfter
	// re has the value in group 1. With before it is searched around the anchor,
	// without it must begin there.
	re *lazyregexp.Regexp
	// locate finds the value in the place of re.
	locate locator
	// column finds any number of values, below a head.
	column func(text []byte, at, size int) ([]span, int)
	// glued allows letters and digits right before the anchor.
	glued bool
	line  bool                    // the value ends where an escaped line break stands
	check func(value []byte) bool // nil: the form is proof enough
}

// place is where a value was found, and how many bytes it cost to look.
type place struct{ start, end, cost int }

// locator finds a value from an anchor, which is text[at:at+size].
type locator func(text []byte, at, size int) (place, bool)

// token is a rule for values that begin with a fixed word: what follows it is
// an expression. Where the word ends in a separator, it says enough by itself:
// what is longer than the format is taken whole, for it may be two tokens in a
// row, or one with something stuck to it.
func token(kind, prefix, rest string) rule {
	r := rule{kind: kind, anchors: []string{strings.ToLower(prefix)},
		check: func(value []byte) bool { return notDummy(value[len(prefix):]) && !isRepetitive(value[len(prefix):]) }}
	expression := `\A(` + regexp.QuoteMeta(prefix) + rest
	if len(prefix) >= 3 && strings.ContainsAny(prefix[len(prefix)-1:], "_-.") {
		expression += `[A-Za-z0-9_\-]*)`
	} else if len(prefix) > 3 { // perhaps with a letter or digit behind it
		expression += `[A-Za-z0-9]?)` + end
	} else {
		expression += `)` + end
	}
	r.re = lazyregexp.New(expression)
	return r
}

// within is a rule for values that have a fixed word somewhere inside.
func within(kind, word string, before int, expression string) rule {
	return rule{kind: kind, anchors: []string{strings.ToLower(word)}, before: before, re: lazyregexp.New(edge + `(` + expression + `)` + end), check: notDummy}
}

// edge is what may stand before a token: see begins.
const edge = `(?:^|\\[abefnrtv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\[[0-9;:?]{0,32}[A-Za-z]|[^A-Za-z0-9]|` + "`[abefnrtv0])"

// end is where a token ends: it is not part of something longer, unless that is
// another token, stuck to it.
const end = `(?:[^A-Za-z0-9]|\z|` + next + `)`

// next is how tokens begin that are often seen.
const next = `A[KS]IA|AIza|ATBB|GOOG[14]|LTAI|SG\.|dapi[0-9a-f]|eyJ|gh[pousr]_|github_pat_|glpat-|hf_|hvs\.|npm_|r8_|SK[0-9a-f]{32}|s[kr]k?[_\-](?:live|test|ant|proj|or)|xox[abceoprs]-|xapp-|3MVG9`

// find looks for a value at an anchor, which is text[at:at+size], and returns
// its place and what it cost to look. Where it is stuck, another one ends there.
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
		if !r.tells(text[at : at+size]) {
			return span{}, 0, false
		}
		glued = true
	}
	m := r.re.FindSubmatchIndex(text[from:to])
	for m != nil && m[1] > 0 && from+m[1] <= at { // another one, before the anchor
		from += max(1, m[3])
		m = r.re.FindSubmatchIndex(text[from:to])
	}
	if m == nil || m[2] == m[3] {
		return span{}, r.reach(), false
	}
	s = span{start: from + m[2], end: from + m[3], kind: r.kind}
	for s.end == to && to < len(text) && to-s.start < maxValue && encodedBytes[text[to]] { // a value longer than is looked at
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
	if s.start == s.end || !check(text[s.start:s.end]) || glued && !isGlued(text[at:at+size], text[min(at+size, s.end):s.end]) {
		return span{}, r.reach(), false
	}
	return s, r.reach(), true
}

// tells reports whether a token may begin in the middle of a word, because other words do not have
// its beginning in them: xghp_…, 1AKIA….
func (r *rule) tells(word []byte) bool {
	switch r.kind {
	case "password", "secret", "authorization", "private-key":
		return false
	}
	return len(word) >= 4 || len(word) == 3 && len(bytes.Trim(word, letters)) > 0 || bytes.EqualFold(word, []byte("xox"))
}

// isGlued reports whether a token in the middle of a word is one: what follows its beginning looks drawn
// and is not the digest in a file's name.
func isGlued(word, value []byte) bool {
	if word[len(word)-1] == '-' && len(word) < 5 && digest.Match(value) {
		return false
	}
	return (hasDigit(value) || mixedCase(value)) && entropy(value) >= 2.8
}

// endOfText returns where a value without quotes ends that is followed by a line
// break in its escaped form.
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
