package config

// nearest returns the known word that word was most likely meant to be, or ""
// when none is close: at most a third of the letters, and one more, may differ.
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b (optimal string alignment). Case costs nothing.
func distance(a, b string) int {
	x, y := []rune(fold(a)), []rune(fold(b))
	before, last, next := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		next[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			next[j+1] = min(last[j]+cost, last[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(y)]
}

// fold makes spellings of one key equal: memory_limit, memory-limit, memoryLimit.
func fold(s string) string {
	var out []rune
	for _, r := range s {
		switch {
		case r == '_' || r == '-':
		case 'A' <= r && r <= 'Z':
			out = append(out, r-'A'+'a')
		default:
			out = append(out, r)
		}
	}
	return string(out)
}
