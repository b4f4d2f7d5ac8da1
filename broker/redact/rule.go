package redact

import (
	"regexp"
	"strings"
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
	re *regexp.Regexp
	// locate finds the value in the place of re, from an anchor of some size.
	locate func(text []byte, at, size int) (start, end int, ok bool)
	// glued allows letters, digits and _ right before the anchor.
	glued bool
	check func(value []byte) bool // nil: the form is proof enough
}

// token is a rule for values that begin with a fixed word: what follows it is
// an expression. Where the word ends in a separator, it says enough by itself:
// what is longer than the format is taken whole, for it may be two tokens in a
// row, or one with something stuck to it.
func token(kind, prefix, rest string) rule {
	expression := `\A(` + regexp.QuoteMeta(prefix) + rest
	if len(prefix) > 3 && strings.ContainsAny(prefix[len(prefix)-1:], "_-.") {
		expression += `[A-Za-z0-9_\-]*)`
	} else {
		expression += `)` + end
	}
	return rule{kind: kind, anchors: []string{strings.ToLower(prefix)}, re: regexp.MustCompile(expression),
		check: func(value []byte) bool { return notDummy(value[len(prefix):]) }}
}

// within is a rule for values that have a fixed word somewhere inside.
func within(kind, word string, before int, expression string) rule {
	return rule{kind: kind, anchors: []string{strings.ToLower(word)}, before: before, re: regexp.MustCompile(`(?:^|[^A-Za-z0-9_.\-])(` + expression + `)` + end), check: notDummy}
}

// end is where a token ends: it is not part of something longer.
const end = `(?:[^A-Za-z0-9_\-]|\z)`

// find looks for a value at an anchor, which is text[at:at+size], and returns
// its place.
func (r *rule) find(text []byte, at, size int) (span, bool) {
	if r.locate != nil {
		start, end, ok := r.locate(text, at, size)
		return span{start, end, r.kind}, ok
	}
	after := r.after
	if after == 0 {
		after = defaultAfter
	}
	from, to := at, min(len(text), at+size+after)
	if r.before > 0 {
		from = max(0, at-r.before)
	} else if !r.glued && at > 0 && isWord(text[at-1]) {
		return span{}, false
	}
	m := r.re.FindSubmatchIndex(text[from:to])
	if m == nil || m[2] == m[3] {
		return span{}, false
	}
	s := span{from + m[2], from + m[3], r.kind}
	check := r.check
	if check == nil {
		check = notDummy
	}
	if !check(text[s.start:s.end]) {
		return span{}, false
	}
	return s, true
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
