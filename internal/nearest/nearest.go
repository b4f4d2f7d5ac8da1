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
	most := len(wanted)/3 + 1
	var near []candidate
	for _, k := range known {
		if len(k) > maxWord {
			continue
		}
		if d := Distance(wanted, fold(k), most); d <= most && d < len(wanted) {
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

// Distance returns the number of items to insert, remove, replace or swap with their neighbour to
// make b of a (optimal string alignment). It returns more than limit if it is more, or if one of them
// has more than 256 items.
func Distance[T comparable](a, b []T, limit int) int {
	if gap := len(a) - len(b); gap > limit || -gap > limit || len(a) > maxWord || len(b) > maxWord {
		return limit + 1
	}
	var rows [3][maxWord + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range a {
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
		before, last, row = last, row, before
	}
	return last[len(b)]
}
