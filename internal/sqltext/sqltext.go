// Package sqltext classifies the effects of SQL. It does not know which database will read a text,
// so a text is only a Read if it is one in all dialects. docs/design/0022-one-judge-of-sql.md
// explains the rule and its limits.
package sqltext

import (
	"slices"
	"strings"
	"unicode"
)

// Effect is the worst possible effect of SQL.
type Effect int

// The effects, from the least to the worst.
const (
	Read    Effect = iota
	Write          // changes data or state, calls an unknown function, or holds a lock
	Destroy        // removes tables, columns, accounts, or the rows of a whole table
	Unclear        // no statement, an unclosed quote or comment, or a text that is too long
)

// String returns the effect as a word.
func (e Effect) String() string {
	return [...]string{"read", "write", "destroy", "unclear"}[e]
}

// MaxText is the size in bytes from which a text is Unclear.
const MaxText = 1 << 20

// Verdict is the worst possible effect of a text.
type Verdict struct {
	Effect Effect
	Reason string // why the text is not a Read, as a message for its author; empty for a Read
	calls  bool   // because of a function
}

// Judge returns the worst possible effect of the statements of a text. It takes linear time and is
// safe for concurrent use.
//
// A text is a Read if every supported dialect splits it into the same statements, and all of these
// only read and call only functions that are known to be pure. If dialects may split a text
// differently, every word of it counts, even in strings.
func Judge(sql string) Verdict {
	if len(sql) > MaxText {
		return Verdict{Effect: Unclear, Reason: "the text is too long to be judged"}
	}
	tokens, problem, open := lex(sql)
	switch {
	case problem != "" && mentionsDestruction(sql):
		return Verdict{Effect: Destroy, Reason: problem}
	case open:
		return Verdict{Effect: Unclear, Reason: problem}
	case problem != "":
		return Verdict{Effect: Write, Reason: problem}
	}
	return judge(tokens)
}

// judge returns the worst effect over the possible readings of the tokens.
func judge(tokens []token) Verdict {
	var begun tail
	for _, t := range tokens {
		begun |= t.tail
	}
	var worst Verdict
	for comments := range hashTail | dashTail + 1 {
		if comments&^begun != 0 {
			continue
		}
		statements := split(tokens, comments)
		if len(statements) == 0 {
			return Verdict{Effect: Unclear, Reason: "there is no statement"}
		}
		for _, s := range statements {
			if v := s.judge(); v.Effect > worst.Effect {
				worst = v
			}
		}
	}
	return worst
}

func (s statement) judge() Verdict {
	reason, calls := s.effect()
	switch {
	case reason == "":
		return Verdict{}
	case s.destroys():
		return Verdict{Destroy, reason, calls}
	}
	return Verdict{Write, reason, calls}
}

// destroys reports whether a statement that is not a Read removes an object, or rows without a
// condition.
func (s statement) destroys() bool {
	first := s.at(s.first()).text
	if first == "truncate" || first == "drop" || s.drops() {
		return true
	}
	return s.everyRow() && (first != "explain" || s.has("analyze", "analyse"))
}

// has reports whether one of the words occurs unquoted.
func (s statement) has(words ...string) bool {
	return slices.ContainsFunc(s, func(t token) bool { return t.kind == word && slices.Contains(words, t.text) })
}

// drops reports whether the statement has DROP TABLE or the like.
func (s statement) drops() bool {
	for i := range s[:max(0, len(s)-1)] {
		next := s[i+1]
		if s.isVerb(i, "drop", "truncate") && next.kind == word && words().objects[next.text] {
			return true
		}
	}
	return false
}

func (s statement) isVerb(i int, verbs ...string) bool {
	return s[i].kind == word && slices.Contains(verbs, s[i].text) && !s.isMember(i)
}

// everyRow reports whether rows are deleted or changed without a condition.
func (s statement) everyRow() bool {
	for i := range s {
		if s.isVerb(i, "delete", "update") {
			return !s.has("where", "limit", "for", "conflict", "duplicate") && s.has("from", "set")
		}
	}
	return false
}

// mentionsDestruction reports whether any word of a text removes or changes something.
func mentionsDestruction(text string) bool {
	for field := range strings.FieldsFuncSeq(text,
		func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		switch strings.ToLower(field) {
		case "drop", "truncate", "delete", "update", "alter", "merge", "shutdown":
			return true
		}
	}
	return false
}
