package redact

import (
	"slices"
	"sync"
)

// ruleset is all rules with the automaton that finds their anchors.
type ruleset struct {
	words *automaton
	sizes []int     // by word: its length
	rules [][]*rule // by word
}

// standard returns the rules. They are built on first use.
var standard = sync.OnceValue(func() *ruleset {
	return newRuleset(slices.Concat(vendorRules(), contextRules(), commandRules(), assignmentRules()))
})

func newRuleset(rules []rule) *ruleset {
	s := &ruleset{}
	var words []string
	at := map[string]int{}
	for i := range rules {
		for _, word := range rules[i].anchors {
			w, ok := at[word]
			if !ok {
				w = len(words)
				at[word] = w
				words = append(words, word)
				s.sizes = append(s.sizes, len(word))
				s.rules = append(s.rules, nil)
			}
			s.rules[w] = append(s.rules[w], &rules[i])
		}
	}
	s.words = newAutomaton(words)
	return s
}

// find returns the spans of all rules. If the budget is exhausted, the rest of the text is one span.
func (s *ruleset) find(text []byte, w *work) []span {
	var spans []span
	ends := 0    // end of the last match
	covered := 0 // end of all matches so far: rules are not tried inside a match
	s.words.scan(text, func(word, end int) bool {
		at := end - s.sizes[word]
		if at < covered {
			return true
		}
		for _, r := range s.rules[word] {
			cost := 0
			if r.column != nil {
				below, read := r.column(text, at, s.sizes[word])
				spans, cost = append(spans, below...), read
			} else if found, read, ok := r.find(text, at, s.sizes[word], at > 0 && at == ends); ok {
				spans, cost = append(spans, found), read
				covered, ends = max(covered, found.end), found.end
			} else {
				cost = read
			}
			if !w.spend(cost) {
				spans = append(spans, span{start: at, end: len(text), kind: kindUnscanned})
				return false
			}
		}
		return true
	})
	return spans
}

// reach returns the cost of trying the rule's expression. Most attempts stop after a few bytes.
func (r *rule) reach() int {
	switch {
	case r.after == 0:
		return r.before + defaultAfter/4
	case r.after <= 1000:
		return r.before + r.after/4
	}
	return r.after
}

// findPlain returns everything that rules find in a text without decoding it.
func findPlain(text []byte, w *work) []span {
	spans := standard().find(text, w)
	spans = append(spans, findInDocuments(text, w)...)
	spans = append(spans, findKeyLines(text)...)
	spans = append(spans, findEmails(text)...)
	return append(spans, findNumbers(text)...)
}
