package redact

import "sync"

// How much looking around anchors may cost: bytes for each byte of text, and at
// least this many. Honest text needs a fraction of it.
const (
	workPerByte = 24
	minWork     = 4 << 20
)

// kindUnscanned is text that was too costly to look through. It is removed
// rather than let through.
const kindUnscanned = "unscanned-text"

// ruleset is all rules with the automaton that finds their anchors.
type ruleset struct {
	words *automaton
	sizes []int     // by word: its length
	rules [][]*rule // by word
}

// standard returns the rules. They are built once, when they are first needed.
var standard = sync.OnceValue(func() *ruleset {
	return newRuleset(append(append(vendorRules(), contextRules()...), assignmentRules()...))
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

// find returns the places of everything that the rules find.
func (s *ruleset) find(text []byte) []span {
	var spans []span
	left := workPerByte*len(text) + minWork
	ends := 0    // where the last match ends
	covered := 0 // up to where a match reaches: nothing inside it is looked at
	s.words.scan(text, func(word, end int) {
		at := end - s.sizes[word]
		if left < 0 || at < covered {
			return
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
			if left -= cost; left < 0 {
				spans = append(spans, span{start: at, end: len(text), kind: kindUnscanned})
				return
			}
		}
	})
	return spans
}

// reach is how many bytes a rule may look at: most stop after a few, but where
// a format is long, text can be made that they do not stop in.
func (r *rule) reach() int {
	switch {
	case r.after == 0:
		return r.before + defaultAfter/4
	case r.after <= 1000:
		return r.before + r.after/4
	}
	return r.after
}

// findPlain looks for all that rules know in a text as it is.
func findPlain(text []byte) []span {
	spans := standard().find(text)
	spans = append(spans, findKeyLines(text)...)
	spans = append(spans, findEmails(text)...)
	return append(spans, findNumbers(text)...)
}
