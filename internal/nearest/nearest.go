// Package nearest finds the word that a misspelt one was most likely meant to be.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// maxWord is the longest word that is looked at, in bytes.
const maxWord = 256

// Word returns the known word nearest to word, or "" when none is near: see Words.
func Word(word string, known []string) string {
	if near := Words(word, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// Words returns up to n known words near to word, nearest first: at most a third
// of the characters, and one more, may differ. Case and separators (- _ . / and
// spaces) cost nothing. Equally near words come in order.
func Words(word string, known []string, n int) []string {
	if len(word) > maxWord || n <= 0 {
		return nil
	}
	type candidate struct {
		word     string
		distance int
	}
	wanted := fold(word)
	var near []candidate
	for _, k := range known {
		if len(k) > maxWord {
			continue
		}
		if d := distance(wanted, fold(k)); d <= len(wanted)/3+1 && d < len(wanted) {
			near = append(near, candidate{k, d})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.word, b.word))
	})
	words := make([]string, 0, min(n, len(near)))
	for _, c := range near[:min(n, len(near))] {
		words = append(words, c.word)
	}
	return words
}

// Hint returns `; did you mean "…"?` for the nearest word, or "".
func Hint(word string, known []string) string {
	if near := Word(word, known); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

func fold(s string) []rune {
	return []rune(separators.Replace(strings.ToLower(s)))
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", "/", "", " ", "")

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
