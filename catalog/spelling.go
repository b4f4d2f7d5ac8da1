package catalog

import (
	"maps"
	"slices"
)

// Words of a question that no tool has are compared with the words that tools
// have, for typing errors and for words that were written together.
const (
	minMisspelt   = 5    // letters: a shorter word is too near to many others
	minWord       = 4    // letters of the word that is meant
	minSimilarity = 0.45 // shared letter pairs over all, of both words
	maxLengthGap  = 3    // letters
	minPart       = 3    // letters of each part of two words in one
)

// spellings finds the words of an index that are written nearly alike. It never
// changes once made.
type spellings struct {
	words  []string          // sorted
	stems  map[string]string // by word
	byPair map[string][]int32
}

func newSpellings(stems map[string]string) spellings {
	s := spellings{words: slices.Sorted(maps.Keys(stems)), stems: stems, byPair: map[string][]int32{}}
	for i, word := range s.words {
		if len(word) >= minWord {
			for _, pair := range letterPairs(word) {
				s.byPair[pair] = append(s.byPair[pair], int32(i))
			}
		}
	}
	return s
}

// letterPairs returns the different pairs of neighbouring bytes of a word, its
// ends marked.
func letterPairs(word string) []string {
	marked := "^" + word + "$"
	pairs := make([]string, 0, len(marked))
	for i := 0; i+2 <= len(marked); i++ {
		if pair := marked[i : i+2]; !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
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
	shared := map[int32]int{}
	for _, pair := range pairs {
		for _, i := range s.byPair[pair] {
			shared[i]++
		}
	}
	best, at := minSimilarity, int32(-1)
	for i, n := range shared {
		other := s.words[i]
		if gap := len(other) - len(word); gap > maxLengthGap || -gap > maxLengthGap {
			continue
		}
		similarity := float64(n) / float64(len(pairs)+len(letterPairs(other))-n)
		if similarity > best || similarity == best && at >= 0 && i < at {
			best, at = similarity, i
		}
	}
	if at < 0 {
		return ""
	}
	return s.stems[s.words[at]]
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
