package redact

// automaton finds many short words in one pass over a text, in any case (A. Aho, M. Corasick,
// "Efficient string matching", CACM 18(6), 1975). It is immutable once built.
type automaton struct {
	next []([256]uint16) // by state and byte: the next state
	out  [][]int         // by state: which words end here
}

// newAutomaton returns an automaton for words, which must be in lower case. Together they may have
// at most 65,535 bytes.
func newAutomaton(words []string) *automaton {
	most := 1 // the maximum number of states, so that the slices are allocated once
	for _, word := range words {
		most += len(word)
	}
	a := &automaton{next: make([][256]uint16, 1, most), out: make([][]int, 1, most)}
	ways := make([][]way, 1, most)
	for i, word := range words {
		state := uint16(0)
		for _, c := range []byte(word) {
			if a.next[state][c] == 0 {
				a.next = append(a.next, [256]uint16{})
				a.out, ways = append(a.out, nil), append(ways, nil)
				to := uint16(len(a.next) - 1)
				a.next[state][c] = to
				ways[state] = append(ways[state], way{c, to})
			}
			state = a.next[state][c]
		}
		a.out[state] = append(a.out[state], i)
	}
	a.link(ways)
	return a
}

// way is a transition to the state of a word that is longer by one byte.
type way struct {
	by byte
	to uint16
}

// link turns the trie, whose transitions are given by state, into an automaton. If a state has no
// transition for a byte, it gets that of its longest proper suffix.
func (a *automaton) link(ways [][]way) {
	fail := make([]uint16, len(a.next))
	queue := make([]uint16, 1, len(a.next)) // shorter words come first, so a suffix is finished before
	for at := 0; at < len(queue); at++ {
		s := queue[at]
		if s != 0 {
			a.out[s] = append(a.out[s], a.out[fail[s]]...)
			a.next[s] = a.next[fail[s]]
		}
		row := &a.next[s]
		for _, w := range ways[s] {
			if s != 0 {
				fail[w.to] = row[w.by]
			}
			row[w.by] = w.to
			if 'a' <= w.by && w.by <= 'z' { // both cases match
				row[w.by-'a'+'A'] = w.to
			}
			queue = append(queue, w.to)
		}
	}
}

// scan calls found with each word and the position of its end, until found returns false.
func (a *automaton) scan(text []byte, found func(word, end int) bool) {
	state := uint16(0)
	for i, c := range text {
		state = a.next[state][c]
		for _, word := range a.out[state] {
			if !found(word, i+1) {
				return
			}
		}
	}
}
