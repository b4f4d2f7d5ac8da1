package catalog

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed stopwords.txt
var stopWordsText string

// stopWords carry no meaning for search: English function words, and the
// words with which people ask for things ("can you please help me find").
// Verbs of tools (get, list, find, show) are not among them.
var stopWords = wordSet(stopWordsText)

// wordSet returns the words of a text as a set, which is made when it is first asked for:
// a program that never searches needs none.
func wordSet(text string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for word := range strings.FieldsSeq(text) {
			set[word] = true
		}
		return set
	})
}

// contentWords returns at most limit words of text without stop words. If all words are
// stop words, it returns them.
func contentWords(text string, limit int) []string {
	all := splitWords(text)
	if len(all) > limit {
		all = all[:limit]
	}
	words := make([]string, 0, len(all))
	for _, word := range all {
		if !stopWords()[word] {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return all
	}
	return words
}
