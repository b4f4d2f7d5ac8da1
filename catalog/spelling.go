package catalog

import (
	"maps"
	"slices"

	"github.com/airlock-mcp/airlock/internal/nearest"
)

// Words of a question that no tool has are compared with the words that tools
// have, for typing errors and for words that were written together.
const (
	minMisspelt   = 5    // letters: a shorter word is too near to many others
	minWord       = 4    // letters of the word that is meant
	minSimilarity = 0.35 // shared letter pairs over all, of both words
	oneMistake    = 7    // letters of a word in which one mistake is understood; in a longer one two are
	minPart       = 3    // letters of each part of two words in one
)

// spellings finds the words of an index that are written nearly alike. It never
// changes once made.
type spellings struct {
	words  []string          // sorted
	stems  map[string]string // by word
	byPair map[letterPair][]int32
	pairs  []uint8 // of each word: how many different pairs it has
}

// letterPair is two neighbouring bytes of a word.
type letterPair [2]byte

func newSpellings(stems map[string]string) spellings {
	s := spellings{words: slices.Sorted(maps.Keys(stems)), stems: stems, byPair: map[letterPair][]int32{}}
	s.pairs = make([]uint8, len(s.words))
	for i, word := range s.words {
		if len(word) < minWord {
			continue
		}
		pairs := letterPairs(word)
		s.pairs[i] = uint8(len(pairs))
		for _, pair := range pairs {
			s.byPair[pair] = append(s.byPair[pair], int32(i))
		}
	}
	return s
}

// letterPairs returns the different pairs of neighbouring bytes of a word, its
// ends marked.
func letterPairs(word string) []letterPair {
	pairs := make([]letterPair, 0, len(word)+1)
	last := byte('^')
	for i := range len(word) + 1 {
		next := byte('$')
		if i < len(word) {
			next = word[i]
		}
		if pair := (letterPair{last, next}); !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
		last = next
	}
	return pairs
}

// near returns the stem of the word that a misspelt one probably means; empty
// when none is near.
func (s *spellings) near(word string) string {
	if len(word) < minMisspelt || len(word) > maxWordBytes {
		return ""
	}
	pairs := letterPairs(word)
	shared := make([]uint8, len(s.words))
	for _, pair := range pairs {
		for _, i := range s.byPair[pair] {
			shared[i]++
		}
	}
	best, at := minSimilarity, -1
	for i, n := range shared {
		if n < 2 {
			continue
		}
		similarity := float64(n) / float64(len(pairs)+int(s.pairs[i])-int(n))
		if similarity > best && isMisspelt(word, s.words[i]) {
			best, at = similarity, i
		}
	}
	if at < 0 {
		return ""
	}
	return s.stems[s.words[at]]
}

// isMisspelt reports whether a word becomes the other one by few changes.
func isMisspelt(word, other string) bool {
	allowed := 2
	if len(word) <= oneMistake {
		allowed = 1
	}
	return nearest.Distance([]byte(word), []byte(other), allowed) <= allowed
}

// parts returns the stems of two words that were written as one.
func (s *spellings) parts(word string) []string {
	for i := minPart; i+minPart <= len(word); i++ {
		first, ok := s.stems[word[:i]]
		if !ok {
			continue
		}
		if second, ok := s.stems[word[i:]]; ok {
			return []string{first, second}
		}
	}
	return nil
}
