package redact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The automaton finds every word at every position, in either case.
func TestAllWordsAreFoundWhereTheyEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab_]{1,4}`), 1, 12, rapid.ID[string]).Draw(t, "words")
		text := rapid.StringMatching(`[abAB_x]{0,40}`).Draw(t, "text")
		var got, want []string
		newAutomaton(words).scan([]byte(text), func(word, end int) bool {
			got = append(got, fmt.Sprint(words[word], " ends at ", end))
			return true
		})
		for _, word := range words {
			for end := len(word); end <= len(text); end++ {
				if strings.EqualFold(text[end-len(word):end], word) {
					want = append(want, fmt.Sprint(word, " ends at ", end))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// The automaton of all rules is built when a process cleans its first text.
func BenchmarkRules(b *testing.B) {
	for b.Loop() {
		newRuleset(append(append(vendorRules(), contextRules()...), assignmentRules()...))
	}
}
