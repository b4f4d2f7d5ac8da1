// Package nearest finds the word that a misspelt one was most likely meant to be.
package nearest

import (
	"slices"
	"strings"
)

// maxWord is the longest word that is looked at, in bytes.
const maxWord = 256

// Word returns the known word nearest to word, or "" when none is near: at most
// a third of the characters, and one more, may differ. Case and the separators
// - and _ cost nothing. Of equally near words the first in order is returned.
func Word(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, least := "", len(word)/3+2
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(k) > maxWord {
			continue
		}
		if d := distance(fold(word), fold(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Hint returns `; did you mean "…"?` for the nearest word, or "".
func Hint(word string, known []string) string {
	if near := Word(word, known); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

func fold(s string) []rune {
	return []rune(strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s)))
}

// distance counts the characters to insert, delete, replace or swap with their
// neighbour (optimal string alignment).
func distance(a, b []rune) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
